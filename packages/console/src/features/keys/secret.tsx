import type { AccessKey } from '@slipway/sdk'
import type { ReactNode } from 'react'
import { SecretDialog } from '../../ui/secret.tsx'

export type CreatedKey = AccessKey & { secret: string }

/** Shows the secret of a new key once, and the ID of a signing key. */
export function KeySecret({
  created,
  title,
  note,
  onClose,
}: {
  created: CreatedKey
  title: string
  note: ReactNode
  onClose: () => void
}) {
  const isSigning = created.kind === 'signing'
  return (
    <SecretDialog
      title={title}
      secret={created.secret}
      note={isSigning ? `This is the secret key. The access key ID is ${created.prefix}.` : note}
      ifLost="If you lose it, revoke this key and create another."
      onClose={onClose}
    />
  )
}

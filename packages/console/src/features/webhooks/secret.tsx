import { SecretDialog } from '../../ui/secret.tsx'

interface SecretProps {
  secret: string
  /** True if the secret replaces an old one. */
  isRotated?: boolean
  onClose: () => void
}

export const Secret = ({ secret, isRotated = false, onClose }: SecretProps) => (
  <SecretDialog
    title={isRotated ? 'New signing secret' : 'Signing secret'}
    secret={secret}
    note={`Use this secret to verify the signature of each delivery (Standard Webhooks).${isRotated ? ' For 24 hours, deliveries are also signed with the old secret.' : ''}`}
    ifLost="If you lose it, rotate the secret on the webhook’s page."
    onClose={onClose}
  />
)

import { SecretDialog } from '../../ui/secret.tsx'

export const Secret = ({ secret, onClose }: { secret: string; onClose: () => void }) => (
  <SecretDialog
    title="Signing secret"
    secret={secret}
    note="Use this secret to verify the signature of each delivery (Standard Webhooks)."
    ifLost="If you lose it, rotate the secret on the webhook’s page."
    onClose={onClose}
  />
)

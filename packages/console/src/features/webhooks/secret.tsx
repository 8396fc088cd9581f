import { SecretDialog } from '../../ui/secret.tsx'

export const Secret = ({ secret, onClose }: { secret: string; onClose: () => void }) => (
  <SecretDialog
    title="The signing secret"
    secret={secret}
    note="Verify each delivery with it, by the Standard Webhooks rules."
    ifLost="Rotating the secret on the webhook’s page makes another."
    onClose={onClose}
  />
)

import { createHmac, randomBytes } from 'node:crypto'

const prefix = 'whsec_'

export const newWebhookSecret = (): string => prefix + randomBytes(32).toString('base64')

/**
 * Returns the headers that the Standard Webhooks specification defines, with one signature for each valid
 * secret.
 */
export function webhookHeaders(
  secrets: string[],
  message: { id: string; sentAt: Date; body: string },
): Record<string, string> {
  const timestamp = Math.floor(message.sentAt.getTime() / 1000)
  const signed = `${message.id}.${timestamp}.${message.body}`
  const signatures = secrets.map((secret) => {
    const key = Buffer.from(secret.slice(prefix.length), 'base64')
    return `v1,${createHmac('sha256', key).update(signed).digest('base64')}`
  })
  return {
    'webhook-id': message.id,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': signatures.join(' '),
  }
}

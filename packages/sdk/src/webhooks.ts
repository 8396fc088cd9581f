import type { Event } from '@slipway/contract'

/** The body of a delivery: the event type, the time, and the event as lists and streams show it. */
export interface WebhookMessage {
  type: string
  timestamp: string
  data: Event
}

/** Thrown if a delivery was not signed with the secret, is too old, or is malformed. */
export class WebhookError extends Error {
  override readonly name = 'WebhookError'
}

export interface VerifyOptions {
  /** The maximum age of a delivery, and the maximum clock difference (default: five minutes). */
  toleranceMs?: number
  now?: number
}

type HeaderSource = Headers | Record<string, string | string[] | undefined>

/**
 * Checks the signature of a delivery (Standard Webhooks) and returns its content. `body` must be the
 * unchanged request body, not JSON that was parsed and serialized again.
 *
 * @example
 * ```ts
 * const body = JSON.stringify({ type: 'vm.running', timestamp: new Date().toISOString(), data: {} })
 * const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
 * const headers = await signWebhook(secret, { id: 'msg_1', sentAt: new Date(), body })
 *
 * const { type } = await verifyWebhook(secret, headers, body)
 * log(type)
 * ```
 */
export async function verifyWebhook(
  secret: string,
  headers: HeaderSource,
  body: string,
  { toleranceMs = 300_000, now = Date.now() }: VerifyOptions = {},
): Promise<WebhookMessage> {
  const read = (name: string) => {
    const value = headers instanceof Headers ? headers.get(name) : headers[name]
    if (typeof value !== 'string' || value === '') throw new WebhookError(`The header ${name} is missing.`)
    return value
  }
  const [id, seconds, given] = [read('webhook-id'), read('webhook-timestamp'), read('webhook-signature')]
  const sentAtMs = Number(seconds) * 1000
  if (!/^\d+$/.test(seconds) || Math.abs(now - sentAtMs) > toleranceMs)
    throw new WebhookError('The delivery is too old, or the clocks of the sender and the receiver differ.')
  const key = await hmacKey(secret)
  const signed = new TextEncoder().encode(`${id}.${seconds}.${body}`)
  // For a day after a rotation, the service signs with both the old and the new secret; one signature must
  // match.
  for (const signature of given.split(' ').filter((text) => text.startsWith('v1,'))) {
    const bytes = bytesOf(signature.slice(3))
    if (bytes && (await crypto.subtle.verify('HMAC', key, bytes, signed))) return JSON.parse(body)
  }
  throw new WebhookError('The signature does not match. The secret is wrong, or the body was changed.')
}

/** Returns the headers of a signed delivery, for testing a receiver. */
export async function signWebhook(
  secret: string,
  message: { id: string; sentAt: Date; body: string },
): Promise<Record<string, string>> {
  const seconds = String(Math.floor(message.sentAt.getTime() / 1000))
  const signed = new TextEncoder().encode(`${message.id}.${seconds}.${message.body}`)
  const signature = new Uint8Array(await crypto.subtle.sign('HMAC', await hmacKey(secret), signed))
  return {
    'webhook-id': message.id,
    'webhook-timestamp': seconds,
    'webhook-signature': `v1,${btoa(String.fromCharCode(...signature))}`,
  }
}

async function hmacKey(secret: string) {
  const bytes = bytesOf(secret.replace(/^whsec_/, ''))
  if (!bytes) throw new WebhookError('The secret has an invalid format; expected whsec_….')
  return crypto.subtle.importKey('raw', bytes, { name: 'HMAC', hash: 'SHA-256' }, false, ['sign', 'verify'])
}

/** Decodes base64; returns undefined for anything else. */
function bytesOf(text: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0))
  } catch {
    return undefined
  }
}

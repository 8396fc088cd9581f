import { Webhook } from 'standardwebhooks'
import { expect, test } from 'vitest'
import { signWebhook, verifyWebhook, WebhookError } from '../src/index.ts'

const secret = `whsec_${btoa('thirty-two bytes of a secret key')}`
const other = `whsec_${btoa('another key, of some other length')}`
const body = JSON.stringify({
  type: 'vm.running',
  timestamp: '2026-11-14T23:50:00.000Z',
  data: { note: 'ü' },
})
const signedBy = (key: string, sentAt = new Date()) => signWebhook(key, { id: 'msg_1', sentAt, body })
/** Verifies at a fixed time, because the tolerance is counted in seconds and the real clock continues. */
const verifiedAfter = async (seconds: number) => {
  const sentAt = new Date('2026-11-14T23:50:00.000Z')
  const headers = await signedBy(secret, sentAt)
  return verifyWebhook(secret, headers, body, { now: sentAt.getTime() + seconds * 1000 })
}

test('deliveries signed by the Standard Webhooks library are accepted, and the library accepts our deliveries', async () => {
  const sentAt = new Date()
  const headers = {
    'webhook-id': 'msg_1',
    'webhook-timestamp': String(Math.floor(sentAt.getTime() / 1000)),
    'webhook-signature': new Webhook(secret).sign('msg_1', sentAt, body),
  }
  expect(await verifyWebhook(secret, headers, body)).toMatchObject({ type: 'vm.running' })
  expect(await verifyWebhook(secret, new Headers(headers), body)).toMatchObject({ data: { note: 'ü' } })
  expect(new Webhook(secret).verify(body, await signedBy(secret))).toMatchObject({ type: 'vm.running' })
})

test('one of several signatures is enough, because secrets overlap for a day', async () => {
  const [old, current] = [await signedBy(other), await signedBy(secret)]
  const both = {
    ...current,
    'webhook-signature': `${old['webhook-signature']} ${current['webhook-signature']}`,
  }
  expect(await verifyWebhook(secret, both, body)).toMatchObject({ type: 'vm.running' })
  expect(await verifyWebhook(other, both, body)).toMatchObject({ type: 'vm.running' })
})

test('a delivery is accepted if the clocks differ by at most five minutes', async () => {
  for (const seconds of [300, -300])
    expect(await verifiedAfter(seconds)).toMatchObject({ type: 'vm.running' })
})

test.each([
  ['another secret', async () => verifyWebhook(other, await signedBy(secret), body)],
  [
    'another body',
    async () => verifyWebhook(secret, await signedBy(secret), body.replace('running', 'deleted')),
  ],
  ['an old timestamp', () => verifiedAfter(301)],
  ['a timestamp in the future', () => verifiedAfter(-301)],
  ['missing headers', async () => verifyWebhook(secret, {}, body)],
  [
    'a signature that is not base64',
    async () => verifyWebhook(secret, { ...(await signedBy(secret)), 'webhook-signature': 'v1,%%%' }, body),
  ],
  ['a secret of another format', async () => verifyWebhook('whsec_%%%', await signedBy(secret), body)],
])('a delivery is rejected: %s', async (_, verify) => {
  await expect(verify()).rejects.toThrow(WebhookError)
})

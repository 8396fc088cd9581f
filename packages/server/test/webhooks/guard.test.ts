import { useService } from '@slipway/testing/service.ts'
import { startReceiver } from '@slipway/testing/webhook-receiver.ts'
import { expect, test } from 'vitest'
import { addressGuard } from '../../src/domain/public-address.ts'
import { WebhookSender } from '../../src/webhooks/sender.ts'

const inside = [
  '0.0.0.0',
  '10.1.2.3',
  '100.64.0.1',
  '127.0.0.1',
  '127.255.255.254',
  '169.254.169.254',
  '172.16.0.1',
  '172.31.255.255',
  '192.0.0.192',
  '192.168.1.1',
  '198.18.0.5',
  '203.0.113.9',
  '224.0.0.1',
  '255.255.255.255',
  '::',
  '::1',
  '::127.0.0.1',
  '::ffff:127.0.0.1',
  '::ffff:10.0.0.1',
  '::ffff:a9fe:a9fe',
  '64:ff9b::7f00:1',
  '64:ff9b:1::a00:1',
  '100::1',
  '2001::1',
  '2001:db8::1',
  '2002:7f00:1::',
  'fc00::1',
  'fd00:ec2::254',
  'fe80::1',
  'fec0::1',
  'ff02::1',
]
const outside = ['1.1.1.1', '8.8.8.8', '172.32.0.1', '192.169.0.1', '2606:4700::1111', '2a00:1450::1']

test('the webhook address guard allows only public addresses', () => {
  const mayReach = addressGuard([])
  expect(inside.filter(mayReach)).toEqual([])
  expect(outside.filter((address) => !mayReach(address))).toEqual([])
  expect(mayReach('not an address')).toBe(false)
})

test('the webhook address guard allows the ranges that the operator configured', () => {
  const mayReach = addressGuard(['10.8.0.0/16', 'fd00::/8', '192.168.7.7'])
  expect(['10.8.1.1', 'fd00::5', '192.168.7.7'].every(mayReach)).toBe(true)
  expect(['10.9.0.1', 'fc00::5', '192.168.7.8'].some(mayReach)).toBe(false)
})

test('the webhook sender connects to the address that was checked, even if the name resolves differently later', async () => {
  const receiver = await startReceiver()
  const { port } = new URL(receiver.url)
  let questions = 0
  const resolve = async () => (++questions === 1 ? ['10.0.0.1', '127.0.0.1'] : ['10.0.0.1'])
  const sender = new WebhookSender(addressGuard(['127.0.0.1']), resolve)
  const outcome = await sender.post(`http://hooks.example.com:${port}/x`, {}, '{}', 5_000)
  expect(outcome).toEqual({ status: 204, error: '', responseBody: '' })
  expect(receiver.received[0]!.headers.host).toBe(`hooks.example.com:${port}`)
  expect(questions).toBe(1)
})

test('a webhook host name that resolves to a private address is refused without a connection', async () => {
  const receiver = await startReceiver()
  const { port } = new URL(receiver.url)
  const sender = new WebhookSender(addressGuard([]), async () => ['::ffff:127.0.0.1', '127.0.0.1'])
  const outcome = await sender.post(`http://rebound.example.com:${port}/x`, {}, '{}', 5_000)
  expect(outcome).toEqual({
    status: 0,
    error: 'the host name of the URL does not resolve to a public address',
    responseBody: '',
  })
  expect(receiver.received).toEqual([])
})

test('the webhook sender gives up on a receiver that does not respond in time', async () => {
  const receiver = await startReceiver()
  receiver.answer = () => new Promise(() => {})
  const sender = new WebhookSender(addressGuard(['127.0.0.0/8']))
  const outcome = await sender.post(receiver.url, {}, '{}', 100)
  expect(outcome).toEqual({ status: 0, error: 'no response within 0.1 s', responseBody: '' })
})

test('a webhook with a private or invalid URL can be neither created nor updated', async () => {
  const service = await useService()
  const { email, password } = service.credentials
  const body = { grant_type: 'password', email, password }
  const { access_token: token } = await service.ok('authToken', { token: null, body })
  for (const url of [
    'http://127.0.0.1/x',
    'http://localhost/x',
    'http://2130706433/',
    'http://0x7f.1/',
    'http://017700000001/',
    'http://[::1]/',
    'http://[::ffff:127.0.0.1]/',
    'http://169.254.169.254/latest/meta-data/',
    'http://10.0.0.1:9000/',
    'https://user:secret@1.1.1.1/',
    'ftp://1.1.1.1/x',
    'file:///etc/passwd',
    'javascript:alert(1)',
    'nonsense',
  ]) {
    const response = await service.call('webhookCreate', { token, body: { url } })
    expect([url, response.status]).toEqual([url, 400])
  }
  const webhook = await service.ok('webhookCreate', { token, body: { url: 'https://1.1.1.1/hook' } })
  expect(webhook).toMatchObject({ url: 'https://1.1.1.1/hook', event_types: [], state: 'active' })
  const params = { webhook_id: webhook.id }
  const moved = await service.call('webhookUpdate', { token, params, body: { url: 'http://[fd00::1]/' } })
  expect(moved.status).toBe(400)
  expect((await service.call('webhookCreate', { body: { url: 'https://1.1.1.1/' } })).status).toBe(403)
})

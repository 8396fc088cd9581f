import { expect, test } from 'vitest'
import { isCurrent, isSignedWith, readSigned } from '../../src/http/family/signature.ts'

const secret = 'AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8'
const path = '/v1alpha5/projects/3fa85f64-5717-4562-b3fc-2c963f66afa6/compute/vms/instances'

test('the signatures of worked examples are accepted', () => {
  const post = readSigned({
    authorization: 'Bearer 1.0:SLPEXAMPLE:tLzEa1RgGfVQSEfOVs6NK-Qxit337-xjGwNeYey1eYc',
    'x-crusoe-timestamp': '2026-11-17T09:23:30Z',
  })!
  expect(post.keyId).toBe('SLPEXAMPLE')
  expect(isSignedWith(secret, post, { method: 'POST', url: path })).toBe(true)
  expect(isSignedWith(secret, post, { method: 'GET', url: path })).toBe(false)
  expect(isSignedWith(secret, post, { method: 'POST', url: `${path}?limit=5` })).toBe(false)
  const get = {
    keyId: 'SLPEXAMPLE',
    signature: '7fcTz2G9oYPnJ_YldbO1SSrCm2zERl00cHoUU9RKhhQ',
    timestamp: '2026-11-17T09:23:30+00:00',
  }
  const url = `${path}?states=STATE_RUNNING&names=a,b%20c&limit=5`
  expect(isSignedWith(secret, get, { method: 'GET', url })).toBe(true)
  expect(isSignedWith(secret, get, { method: 'GET', url: url.replace('limit=5', 'limit=6') })).toBe(false)
})

test('a time is current within five minutes, in the forms of both kinds of clients', () => {
  const now = Date.parse('2026-11-17T09:23:30Z')
  for (const timestamp of [
    '2026-11-17T09:23:30Z',
    '2026-11-17T09:28:30+00:00',
    '2026-11-17T10:18:30+01:00',
    '2026-11-17T09:23:30.123456Z',
  ])
    expect(isCurrent(timestamp, now), timestamp).toBe(true)
  for (const timestamp of [
    '2026-11-17T09:28:31Z',
    '2026-11-17T09:18:29Z',
    '2026-11-17',
    'now',
    '',
    '1763371410',
  ])
    expect(isCurrent(timestamp, now), timestamp).toBe(false)
})

test('a header in any other format is not a signature', () => {
  const headers = (authorization: string) => ({ authorization, 'x-crusoe-timestamp': '2026-11-17T09:23:30Z' })
  const signature = 'tLzEa1RgGfVQSEfOVs6NK-Qxit337-xjGwNeYey1eYc'
  for (const authorization of [
    '',
    `Bearer 2.0:SLPEXAMPLE:${signature}`,
    `Bearer 1.0:SLPEXAMPLE:${signature}=`,
    `Bearer 1.0:SLP:EXAMPLE:${signature}`,
    `Bearer 1.0:${'x'.repeat(65)}:${signature}`,
    'Bearer 1.0::',
  ])
    expect(readSigned(headers(authorization)), authorization).toBeUndefined()
  expect(readSigned({ authorization: `Bearer 1.0:SLPEXAMPLE:${signature}` })).toBeUndefined()
})

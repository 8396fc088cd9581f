import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import {
  openSecret,
  type SecretKey,
  type SecretKeys,
  sealedKeyId,
  sealSecret,
  secretKeyOf,
} from '../src/domain/secret-key.ts'
import { loadSecretKey } from '../src/setup/secret-key-file.ts'

const directory = mkdtempSync(join(tmpdir(), 'slipway-key-'))
afterAll(() => rmSync(directory, { recursive: true }))
const key = secretKeyOf(Buffer.alloc(32, 7))
const ring = (...keys: SecretKey[]): SecretKeys => ({
  newest: keys[0]!,
  find: (id) => keys.find((each) => each.id === id),
})

test('encrypted data can be decrypted only with its own key, and only if it is unchanged', () => {
  const sealed = sealSecret(ring(key), 'grüße')
  expect(sealed.toString('latin1')).not.toContain('gr')
  expect(sealedKeyId(sealed)).toBe(key.id)
  expect(openSecret(ring(key), sealed)).toBe('grüße')
  const other = secretKeyOf(Buffer.alloc(32, 8))
  expect(() => openSecret(ring(other), sealed)).toThrow(key.id)
  for (const index of [0, 9, 25, sealed.length - 1]) {
    const changed = Buffer.from(sealed)
    changed[index] = changed[index]! ^ 1
    expect(() => openSecret(ring(key), changed)).toThrow()
  }
})

test('processes that start together in one data directory get one key, readable only by its owner', async () => {
  const dataDir = join(directory, 'together')
  const keys = await Promise.all(
    Array.from({ length: 8 }, () => loadSecretKey({ secretKeyFile: '', dataDir })),
  )
  expect(new Set(keys.map(({ newest }) => newest.id)).size).toBe(1)
  expect(readdirSync(dataDir)).toEqual(['secret.key'])
  expect(statSync(join(dataDir, 'secret.key')).mode & 0o777).toBe(0o600)
})

test('a key file that the operator configures is read, and never created or repaired', async () => {
  const file = join(directory, 'named')
  const load = () => loadSecretKey({ secretKeyFile: file, dataDir: directory })
  await expect(load()).rejects.toThrow('cannot be read (ENOENT)')
  writeFileSync(file, 'too short')
  await expect(load()).rejects.toThrow('64 hex digits')
  writeFileSync(file, key.bytes.toString('hex'))
  expect((await load()).newest.id).toBe(key.id)
})

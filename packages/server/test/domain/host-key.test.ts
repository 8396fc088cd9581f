import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseSshPublicKey } from '@slipway/contract/ssh-key'
import { expect, test } from 'vitest'
import {
  dropbearPrivateKey,
  ed25519KeyOf,
  hostKeyBlob,
  newHostKey,
  openSshPrivateKey,
} from '../../src/domain/guest/host-key.ts'

test('OpenSSH derives the public key of a host key from its private key file', () => {
  const folder = mkdtempSync(join(tmpdir(), 'slipway-key-'))
  try {
    for (let n = 0; n < 20; n++) {
      const key = newHostKey()
      expect(parseSshPublicKey(key.publicKey)).toMatchObject({ ok: true, type: 'ssh-ed25519' })
      const file = join(folder, `key-${n}`)
      writeFileSync(file, openSshPrivateKey(key), { mode: 0o600 })
      expect(execFileSync('ssh-keygen', ['-y', '-f', file], { encoding: 'utf8' }).trim()).toBe(key.publicKey)
    }
  } finally {
    rmSync(folder, { recursive: true })
  }
})

test("host keys are unique, and in dropbear's format each ends with its public half", () => {
  const [one, two] = [newHostKey(), newHostKey()]
  expect(one.privateKey).not.toBe(two.privateKey)
  const point = hostKeyBlob(one).subarray(-32)
  expect(dropbearPrivateKey(one).subarray(-32)).toEqual(point)
  expect(dropbearPrivateKey(one)).toHaveLength(4 + 11 + 4 + 64)
})

test('only an ed25519 key is recognized as a host key', () => {
  const blob = hostKeyBlob(newHostKey())
  expect(ed25519KeyOf(blob)?.asymmetricKeyType).toBe('ed25519')
  expect(ed25519KeyOf(blob.subarray(1))).toBeUndefined()
  expect(ed25519KeyOf(Buffer.alloc(0))).toBeUndefined()
})

import { expect, test } from 'vitest'
import { newHostKey } from '../../src/domain/guest/host-key.ts'
import { userData } from '../../src/engines/cloud-init.ts'
import type { VmSpec } from '../../src/engines/engine.ts'

const seedOf = (sshHostKey: VmSpec['sshHostKey'], image: Partial<VmSpec['image']> = {}, isNew = true) =>
  JSON.parse(
    userData({
      ...{ sshPublicKeys: [], sshHostKey, image, isNew, startupScript: '', shutdownScript: '' },
    } as unknown as VmSpec)
      .split('\n')
      .slice(1)
      .join('\n'),
  ) as Record<string, unknown>

test('a guest gets its host key once, and keeps it when its user data changes', () => {
  const key = newHostKey()
  expect(seedOf(key)).toMatchObject({ ssh_deletekeys: true, ssh_keys: { ed25519_public: key.publicKey } })
  // cloud-init treats changed user data as a new machine, and generates new host keys unless configured otherwise.
  const later = seedOf({ ...key, privateKey: '' })
  expect(later).toMatchObject({ ssh_deletekeys: false })
  expect(later).not.toHaveProperty('ssh_keys')
  expect(seedOf(null)).not.toHaveProperty('ssh_deletekeys')
})

test('a guest from a custom image gets its own machine id and loses the keys of the source VM, once', () => {
  const key = newHostKey()
  const isCustom = { isCustom: true as const }
  const [command] = seedOf(key, isCustom).bootcmd as string[][]
  expect(command!.slice(0, 3)).toEqual(['cloud-init-per', 'instance', 'slipway-new-machine'])
  expect(command!.at(-1)).toMatch(/authorized_keys.*machine-id/)
  expect(seedOf(null, isCustom)).toHaveProperty('bootcmd')
  expect(seedOf({ ...key, privateKey: '' }, isCustom)).not.toHaveProperty('bootcmd')
  expect(seedOf(null, isCustom, false)).not.toHaveProperty('bootcmd')
  expect(seedOf(key)).not.toHaveProperty('bootcmd')
})

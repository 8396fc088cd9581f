import { expect, test } from 'vitest'
import { newHostKey } from '../../src/domain/guest/host-key.ts'
import { userData } from '../../src/engines/cloud-init.ts'
import type { VmSpec } from '../../src/engines/engine.ts'

const told = (sshHostKey: VmSpec['sshHostKey'], image: Partial<VmSpec['image']> = {}, isNew = true) =>
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
  expect(told(key)).toMatchObject({ ssh_deletekeys: true, ssh_keys: { ed25519_public: key.publicKey } })
  // cloud-init treats changed user data as a new machine, and generates new host keys unless configured otherwise.
  const later = told({ ...key, privateKey: '' })
  expect(later).toMatchObject({ ssh_deletekeys: false })
  expect(later).not.toHaveProperty('ssh_keys')
  expect(told(null)).not.toHaveProperty('ssh_deletekeys')
})

test('a guest from a custom image gets its own machine id and loses the keys of the source VM, once', () => {
  const key = newHostKey()
  const isCustom = { isCustom: true as const }
  const [command] = told(key, isCustom).bootcmd as string[][]
  expect(command!.slice(0, 3)).toEqual(['cloud-init-per', 'instance', 'slipway-new-machine'])
  expect(command!.at(-1)).toMatch(/authorized_keys.*machine-id/)
  expect(told(null, isCustom)).toHaveProperty('bootcmd')
  expect(told({ ...key, privateKey: '' }, isCustom)).not.toHaveProperty('bootcmd')
  expect(told(null, isCustom, false)).not.toHaveProperty('bootcmd')
  expect(told(key)).not.toHaveProperty('bootcmd')
})

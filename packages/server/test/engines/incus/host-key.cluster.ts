import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { newHostKey } from '../../../src/domain/guest/host-key.ts'
import type { IncusEngine } from '../../../src/engines/incus/engine.ts'
import { ConformanceBench } from '../../support/conformance-bench.ts'
import { IncusBench } from '../../support/incus-bench.ts'
import { makeKey } from '../../support/qemu-bench.ts'

const publicAddress = '203.0.113.7'
let bench: IncusBench
let engine: IncusEngine
beforeAll(async () => {
  bench = await IncusBench.alone()
  engine = await bench.engine()
}, 120_000)
afterAll(async () => {
  await engine?.close()
  await bench?.close()
}, 60_000)

test('an incus guest is verified by its host key at the first connection, and a different key is rejected', async () => {
  const keyFile = join(bench.dir, 'key')
  const image = { name: 'guest:latest', source: { alias: 'guest:latest' } }
  const sshPublicKey = await makeKey(keyFile)
  const subject = { engine, host: 'm1', image, publicAddress, sshPublicKey, close: async () => {} }
  const vm = await ConformanceBench.open({ ...subject, patienceMs: 60_000 })
  vm.spec.sshHostKey = newHostKey()
  await engine.ensureVm(vm.spec, vm.wanted('on'), vm.next())
  await vm.until('running')

  const hostnameBy = async (hostKey: string) => {
    const known = join(bench.dir, 'known_hosts')
    await writeFile(known, `${publicAddress} ${hostKey}\n`)
    const options = [`UserKnownHostsFile=${known}`, 'StrictHostKeyChecking=yes', 'BatchMode=yes']
    const flags = ['-i', keyFile, ...options.flatMap((option) => ['-o', option])]
    return bench.fromClient('ssh', ...flags, `root@${publicAddress}`, 'hostname')
  }
  expect(await hostnameBy(vm.spec.sshHostKey.publicKey)).toBe('conformance-1\n')
  await expect(hostnameBy(newHostKey().publicKey)).rejects.toThrow(/Host key verification failed/)
  await engine.removeVm(vm.spec, vm.next())
})

import { join } from 'node:path'
import { expect } from 'vitest'
import { engineConformance } from '../support/conformance.ts'
import { IncusBench } from '../support/incus-bench.ts'
import { makeKey } from '../support/qemu-bench.ts'

engineConformance('incus', async () => {
  const bench = await IncusBench.alone()
  const engine = await bench.engine()
  const keyFile = join(bench.dir, 'key')
  const publicAddress = '203.0.113.7'
  return {
    engine,
    host: 'm1',
    image: { name: 'guest:latest', source: { alias: 'guest:latest' } },
    publicAddress,
    sshPublicKey: await makeKey(keyFile),
    patienceMs: 30_000,
    async sshCheck(destination) {
      const options = [
        'StrictHostKeyChecking=no',
        'UserKnownHostsFile=/dev/null',
        'LogLevel=ERROR',
        'BatchMode=yes',
      ]
      const flags = options.flatMap((option) => ['-o', option])
      expect(await bench.fromClient('ssh', '-i', keyFile, ...flags, destination, 'hostname')).toBe(
        'conformance-1\n',
      )
    },
    async close() {
      await engine.close()
      await bench.close()
    },
  }
})

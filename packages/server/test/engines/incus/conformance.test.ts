import { join } from 'node:path'
import { describe, expect } from 'vitest'
import { engineConformance } from '../../support/conformance.ts'
import type { EngineUnderTest } from '../../support/conformance-bench.ts'
import { IncusBench, whyNoIncus } from '../../support/incus-bench.ts'
import { makeKey } from '../../support/qemu-bench.ts'

async function incusUnderTest(): Promise<EngineUnderTest> {
  const bench = await IncusBench.alone()
  const engine = await bench.engine(bench.config({ disk_pool: 'disks' }))
  const keyFile = join(bench.dir, 'key')
  const publicAddress = '203.0.113.7'
  return {
    engine,
    host: 'm1',
    image: { name: 'guest:latest', source: { alias: 'guest:latest' } },
    publicAddress,
    sshPublicKey: await makeKey(keyFile),
    patienceMs: 200_000,
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
    // The guest is not always on, so the test checks the state of the kernel instead of responses.
    async isOpen(_vmId, port) {
      const rule = `ip saddr 0.0.0.0/0 ip daddr 172.27.0.10 tcp dport ${port} accept`
      return (await bench.members[0]!.packetFilter()).includes(rule)
    },
    async close() {
      await engine.close()
      await bench.close()
    },
  }
}

describe.skipIf(whyNoIncus)(`conformance ${whyNoIncus}`, () => engineConformance('incus', incusUnderTest))

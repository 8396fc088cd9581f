import { expect } from 'vitest'
import { engineConformance } from '../support/conformance.ts'
import { makeBench } from '../support/qemu-bench.ts'

engineConformance('qemu', async () => {
  const bench = await makeBench()
  const engine = await bench.open()
  let host = ''
  for await (const report of engine.inventory(AbortSignal.timeout(10_000))) host = report.name
  return {
    engine,
    host,
    image: bench.image,
    publicAddress: bench.publicAddress,
    routesAnyAddress: true,
    consolePrompt: /conformance-1 login: /,
    sshPublicKey: bench.sshPublicKey,
    async sshCheck(destination) {
      expect(await bench.ssh(destination, 'hostname')).toBe('conformance-1')
    },
    async close() {
      await engine.close()
      await bench.close()
    },
  }
})

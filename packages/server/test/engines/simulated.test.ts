import { startService } from '@slipway/testing/service.ts'
import { SimulatedEngine } from '../../src/engines/simulated/engine.ts'
import { engineConformance } from '../support/conformance.ts'

engineConformance('simulated', async () => {
  // No worker: its reconciler would remove what no record knows.
  const service = await startService((config) => {
    config.server.role = 'api'
  })
  const engine = new SimulatedEngine({
    database: service.database,
    location: 'us-east1-a',
    bootMs: [20, 60],
    quarantineMs: 20,
  })
  let host = ''
  for await (const report of engine.inventory()) host ||= report.name
  return {
    engine,
    host,
    image: { name: 'ubuntu24.04-nvidia:latest', source: {} },
    publicAddress: '198.18.0.7',
    patienceMs: 10_000,
    close: () => service.close(),
  }
})

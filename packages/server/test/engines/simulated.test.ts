import { SimulatedEngine } from '../../src/engines/simulated/engine.ts'
import { startService } from '../harness.ts'
import { engineConformance } from './conformance.ts'

engineConformance('simulated', async () => {
  // No worker: its reconciler would remove what no record knows.
  const service = await startService((config) => {
    config.server.role = 'api'
  })
  const engine = new SimulatedEngine({
    database: service.server.services.database,
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

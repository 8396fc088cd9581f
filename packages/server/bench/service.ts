/**
 * Speed of the service against limits measured in the same run, on the same machine: the built program as `npm start`
 * runs it, embedded PostgreSQL with fsync, simulated hosts that boot at once. `--quick` is a look in a minute, and words
 * choose among the groups.
 */
import { parseArgs } from 'node:util'
import { measureChanges } from './changes.ts'
import { quick, usual } from './effort.ts'
import { type Figure, print } from './figures.ts'
import { readerName } from './load.ts'
import { measureReads } from './reads.ts'
import { RunningService } from './running-service.ts'

const { values } = parseArgs({ options: { quick: { type: 'boolean', default: false } } })
const effort = values.quick ? quick : usual
const hosts = 2_000

const service = new RunningService(hosts)
try {
  await service.start()
  console.error(`  ready after ${Math.round(service.main.readyMs)} ms; reads are measured with ${readerName}`)
  const show = (figures: Figure[]) => figures.forEach(print)
  const changes = await measureChanges(service, effort)
  show(changes.figures)
  show(await measureReads(service, changes.left, effort))
} finally {
  await service.close()
}

/**
 * Speed of the service against limits measured in the same run, on the same machine: the built program as `npm start`
 * runs it, embedded PostgreSQL with fsync, simulated hosts that boot at once. `--quick` is a look in a minute, and
 * `--only reads,changes` leaves the rest out.
 */
import { parseArgs } from 'node:util'
import { measureChanges } from './changes.ts'
import { quick, usual } from './effort.ts'
import { type Figure, print } from './figures.ts'
import { addVms } from './fixtures.ts'
import { readerName } from './load.ts'
import { measureReads } from './reads.ts'
import { RunningService } from './running-service.ts'

const groups: Record<string, () => Promise<Figure[]>> = {
  changes: () => measureChanges(service, effort),
  reads: async () => measureReads(service, await addVms(service), effort),
}

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    only: { type: 'string', default: Object.keys(groups).join() },
  },
})
const effort = values.quick ? quick : usual
const wanted = values.only.split(',')
const unknown = wanted.filter((name) => !groups[name])
if (unknown.length > 0) throw new Error(`--only ${unknown}: there are ${Object.keys(groups).join(', ')}`)

const service = new RunningService(effort.hosts)
try {
  await service.start()
  console.error(`  ready after ${Math.round(service.main.readyMs)} ms; reads are measured with ${readerName}`)
  for (const name of wanted) for (const figure of await groups[name]!()) print(figure)
} finally {
  await service.close()
}

/**
 * Measures the speed of the service and compares it with baselines measured in the same run, on the same
 * machine. It uses the built program as `npm start` runs it, embedded PostgreSQL with fsync, and simulated
 * hosts that boot VMs immediately. `--quick` takes about a minute, and `--only reads,changes` runs only these
 * parts.
 */
import { parseArgs } from 'node:util'
import { measureGroups } from './capacity/groups.ts'
import { measureWaiting } from './capacity/waiting.ts'
import { measureChanges } from './changes.ts'
import { type Effort, quick, usual } from './effort.ts'
import { type Figure, type Group, print } from './figures.ts'
import { addCopies, addVms } from './fixtures.ts'
import { readerName } from './load.ts'
import { Memory } from './process/memory.ts'
import { measureStarts } from './process/starts.ts'
import { measureProcesses } from './processes.ts'
import { measureReads, type Vms } from './reads.ts'
import { readResults, runNow, saveResults } from './results.ts'
import { RunningService } from './running-service.ts'
import { measureStreams } from './streams.ts'

type Measure = (service: RunningService, vms: Vms, effort: Effort) => Promise<Figure[]>

const measurements: Record<Group, Measure> = {
  reads: measureReads,
  changes: (service, _, effort) => measureChanges(service, effort),
  waiting: (service, _, effort) => measureWaiting(service, effort),
  groups: (service, _, effort) => measureGroups(service, effort),
  streams: (service, _, effort) => measureStreams(service, effort),
  processes: measureProcesses,
  starts: async (service, _, { starts }) => [memory.figure, ...(await measureStarts(service, starts))],
}
const names = Object.keys(measurements) as Group[]
/** With more processes than cores, a short run is not meaningful. */
const quickNames = names.filter((name) => name !== 'processes')

const { values } = parseArgs({
  options: { quick: { type: 'boolean', default: false }, only: { type: 'string' } },
})
const effort = values.quick ? quick : usual
const wanted = (values.only?.split(',') ?? (values.quick ? quickNames : names)) as Group[]
const unknown = wanted.filter((name) => !names.includes(name))
if (unknown.length > 0) throw new Error(`--only ${unknown}: unknown name. Supported: ${names.join(', ')}`)

const service = new RunningService(effort.hosts)
const memory = new Memory(service)
try {
  await service.start()
  console.error(`  ready after ${Math.round(service.main.readyMs)} ms; reads are measured with ${readerName}`)
  const created = (await addVms(service)) as Vms
  const readsVms = wanted.includes('reads') || wanted.includes('processes')
  const vms = readsVms ? ((await addCopies(service, created, effort.vms)) as Vms) : created
  const run = runNow(await service.postgresVersion(), values.quick)
  // If only a part is measured, keep the other figures of the last run.
  const figures = values.only ? { ...readResults().service?.figures } : {}
  for (const name of wanted) {
    const measured = await measurements[name](service, vms, effort)
    await memory.note(name)
    measured.forEach(print)
    figures[name] = measured
  }
  saveResults({ service: { ...run, figures } })
} finally {
  await service.close()
}

import type { Effort } from './effort.ts'
import { atMost, type Figure } from './figures.ts'
import { addTenants, type Tenant } from './fixtures.ts'
import { runChild } from './load.ts'
import { cpuEach, measureCost } from './meter.ts'
import type { RunningService } from './running-service.ts'

export interface StreamTask {
  url: string
  databaseUrl: string
  tenants: Tenant[]
  streamsEach: number
  perSecond: number
  seconds: number
}

export interface StreamResult {
  p50: number
  p99: number
  /** The number of events that were actually written per second. */
  perSecond: number
  written: number
  /** The number of events that readers had not received ten seconds after the last commit. */
  missing: number
  loadCores: number
}

const projects = 100
const streamsEach = 5
const perSecond = 1_000

/** Measures the time from an event's commit to its arrival at each reader. */
export async function measureStreams(service: RunningService, effort: Effort): Promise<Figure[]> {
  const tenants = await addTenants(service.database, 'stream', 1, projects)
  const task: StreamTask = {
    url: service.main.url,
    databaseUrl: service.databaseUrl,
    tenants,
    streamsEach,
    perSecond,
    seconds: effort.streamSeconds,
  }
  const { result, cost } = await measureCost(service, () => runChild<StreamResult>('stream-child', task))
  const { p50, p99, written, missing, loadCores } = result
  const delayAim = atMost(p99, 250, 'ms')
  // Events that never arrived or were not written in time have no delay, so any of them misses the target.
  const aim = { ...delayAim, isMet: delayAim.isMet && missing === 0 && result.perSecond > 0.95 * perSecond }
  return [
    {
      id: 'streams',
      what: `${projects * streamsEach} event streams, ${perSecond.toLocaleString('en')} events/s, commit → reader, p99`,
      value: p99,
      unit: 'ms',
      aim,
      cpu: cpuEach(cost, written, loadCores),
      more: { 'p50 ms': p50, 'events per second': result.perSecond, missing },
    },
  ]
}

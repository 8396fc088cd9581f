import { hash } from 'node:crypto'
import type { EventType, HostState } from '@slipway/contract'
import { gpuStateAfterReport, shapeOf } from '../domain/host-report.ts'
import { inParts } from '../domain/lists.ts'
import type { HostReport } from '../engines/engine.ts'
import type { Database, Tx } from '../postgres/database.ts'
import { holdLock } from '../postgres/locks.ts'
import { emit, type NewEvent } from '../store/events/events.ts'
import {
  type Asked,
  type GpuPlace,
  type HostChange,
  type KnownGpuRow,
  type LostHost,
  lockReportedHosts,
  loseHosts,
  loseSilentHosts,
  type ReportedHost,
  type Silence,
  touchReports,
  writeReportedHosts,
} from '../store/fleet/host-reports.ts'
import type { Inspection } from '../store/fleet/inspections.ts'
import { noteEngineAnswer, silenceMs } from '../store/fleet/locations.ts'
import { findHostsBehind, hasVmsOnDownHosts } from '../store/network/firewall-queue.ts'

/** Small enough that one statement stays short, large enough that thousands of hosts take a few. */
const reportsPerStatement = 1000
/** Its hosts are locked while it lasts, so that no placement waits long. */
const changesPerTransaction = 50

/** A report that does not repeat the last one of its host. */
export interface News {
  name: string
  fingerprint: string
  report: HostReport
}

/**
 * Brings the store to what an engine reports of its hosts. Returns how many reports said something new; the others
 * only had their time noted: when they were asked for, or now.
 */
export async function applyHostReports(
  database: Database,
  location: string,
  engineName: string,
  reports: HostReport[],
  asked: Asked = { askedAt: null, inspection: 0 },
): Promise<number> {
  const news = await findNews(database, location, reports, asked)
  await applyNews(database, location, engineName, news, asked)
  return news.length
}

/**
 * Notes the time of hosts that repeat their last report. Returns the reports of the others: they say something new, or
 * their host is down.
 */
export async function findNews(
  database: Database,
  location: string,
  reports: HostReport[],
  asked: Asked,
): Promise<News[]> {
  const news: News[] = []
  for (const some of inParts(reports, reportsPerStatement)) {
    const reported = some.map((report) => ({ name: report.name, fingerprint: fingerprintOf(report), report }))
    const repeated = await touchReports(database, location, reported, asked)
    news.push(...reported.filter(({ name }) => !repeated.has(name)))
  }
  return news
}

export async function applyNews(
  database: Database,
  location: string,
  engineName: string,
  news: News[],
  asked: Asked,
): Promise<void> {
  for (const few of inParts(news, changesPerTransaction))
    await database.transaction((tx) => applySomeNews(tx, location, engineName, few, asked))
}

async function applySomeNews(
  tx: Tx,
  location: string,
  engineName: string,
  news: News[],
  asked: Asked,
): Promise<void> {
  const names = news.map(({ name }) => name)
  // Before any host is locked: whoever shares this lock may wait for a host.
  if (await hasVmsOnDownHosts(tx, location, names)) await holdLock(tx, 'returningHosts')
  const { hosts, gpus } = await lockReportedHosts(tx, location, names, {
    askedAt: asked.askedAt,
    silenceMs,
  })
  const idsDown = hosts.filter(({ state }) => state === 'down').map(({ id }) => id)
  const hostsBehind = idsDown.length > 0 ? await findHostsBehind(tx, idsDown) : new Set()
  const newsByName = new Map(news.map((one) => [one.name, one]))
  const events: NewEvent[] = []
  const changes = hosts.map((host) => {
    const { report, fingerprint } = newsByName.get(host.name)!
    const { change, notices } = changeOf(
      host,
      gpus.filter((gpu) => gpu.hostId === host.id),
      report,
      host.is_late || hostsBehind.has(host.id),
    )
    for (const { type, data } of notices)
      events.push(systemEvent(type, host.id, { name: host.name, location, ...data }))
    return { ...change, capabilities: { ...change.capabilities, engine: engineName }, fingerprint }
  })
  await writeReportedHosts(tx, changes, asked)
  for (const event of events) await emit(tx, event)
}

interface Notice {
  type: EventType
  data: Record<string, unknown>
}

function changeOf(
  host: ReportedHost,
  known: KnownGpuRow[],
  report: HostReport,
  isKeptDown: boolean,
): { change: Omit<HostChange, 'fingerprint'>; notices: Notice[] } {
  const { family, usableGpus, usable, unusable } = shapeOf(report)
  const reportedAt = new Map(report.gpus.map((gpu) => [gpu.pciAddress, gpu]))
  const usableAt = new Map(usable.map((gpu) => [gpu.pciAddress, gpu]))
  const knownAt = new Map(known.map((gpu) => [gpu.pciAddress, gpu]))
  const place = (pciAddress: string): GpuPlace => {
    const knownGpu = knownAt.get(pciAddress) ?? null
    const { model, numaNode, iommuGroup } = reportedAt.get(pciAddress) ?? knownGpu!
    const state = gpuStateAfterReport(knownGpu, usableAt.get(pciAddress) ?? null)
    return { hostId: host.id, pciAddress, model, numaNode, iommuGroup, state }
  }
  const missing = known.filter((gpu) => gpu.state === 'claimed' && !reportedAt.has(gpu.pciAddress))
  const change = {
    id: host.id,
    family,
    usableGpus,
    capabilities: {
      ...report.capabilities,
      cpu_cores: report.cpuCores,
      memory_gb: report.memoryGb,
      ...(unusable.length > 0 && { unusable_gpus: unusable }),
      ...(missing.length > 0 && { missing_gpus: missing.map((gpu) => gpu.pciAddress) }),
    },
    state: stateAfterReport(host, isKeptDown),
    known: [...knownAt.keys()].map(place),
    found: [...reportedAt.keys()].filter((pciAddress) => !knownAt.has(pciAddress)).map(place),
  }
  const toldBefore = (host.capabilities.missing_gpus ?? []) as string[]
  const notices = missing
    .filter(({ pciAddress }) => !toldBefore.includes(pciAddress))
    .map(({ id, pciAddress, vmId }) => ({
      type: 'gpu.missing' as const,
      data: { gpu_id: id, pci_address: pciAddress, vm_id: vmId },
    }))
  if (host.state !== 'down' || isKeptDown) return { change, notices }
  return { change, notices: [{ type: 'host.up', data: { gpus: usable.length } }, ...notices] }
}

const systemEvent = (type: EventType, hostId: string, data: Record<string, unknown>): NewEvent => ({
  type,
  resourceType: 'host',
  resourceId: hostId,
  actor: 'system',
  requestId: '',
  data,
})

/**
 * A host that was asked to drain goes on draining when it comes back; whether it is empty shows afterwards. One that has
 * firewalls behind, or was heard of before it fell silent, is not back yet.
 */
function stateAfterReport(host: ReportedHost, isKeptDown: boolean): HostState {
  if (host.state !== 'down' || isKeptDown) return host.state
  return host.is_draining ? 'draining' : 'up'
}

/** Of what this file uses of a report; holders and resets of GPUs change all the time and are read elsewhere. */
function fingerprintOf({ cpuCores, memoryGb, isClosed = false, capabilities, gpus }: HostReport): string {
  const places = gpus
    .map(({ pciAddress, model, numaNode, iommuGroup }) => [pciAddress, model, numaNode, iommuGroup])
    .sort(([a], [b]) => (String(a) < String(b) ? -1 : 1))
  return hash('sha256', JSON.stringify([cpuCores, memoryGb, isClosed, capabilities, places]), 'base64url')
}

/** Hosts that have not reported for so long take no more VMs. Returns how many were lost. */
export async function markLostHosts(
  database: Database,
  afterMs: number,
  silence: Silence = {},
): Promise<number> {
  return database.transaction((tx) => loseAndTell(tx, afterMs, silence))
}

/** Ends a inspection at a location: notes that its engine told everything, if it did, and marks its silent hosts. */
export async function endInspection(
  database: Database,
  location: string,
  { inspection, isComplete }: { inspection: Inspection; isComplete: boolean },
): Promise<void> {
  await database.transaction(async (tx) => {
    if (isComplete) await noteEngineAnswer(tx, location)
    await loseAndTell(tx, silenceMs, { locations: [location], inspection })
  })
}

async function loseAndTell(tx: Tx, afterMs: number, silence: Silence): Promise<number> {
  const lost = await loseSilentHosts(tx, afterMs, silence)
  await emitDown(tx, lost)
  return lost.length
}

/** Hosts of which their engine knows that they are away take no VMs from this moment on. */
export async function markAwayHosts(database: Database, location: string, names: string[]): Promise<void> {
  if (names.length > 0)
    await database.transaction(async (tx) => emitDown(tx, await loseHosts(tx, location, names)))
}

async function emitDown(tx: Tx, lost: LostHost[]): Promise<void> {
  for (const { id, name, location } of lost) await emit(tx, systemEvent('host.down', id, { name, location }))
}

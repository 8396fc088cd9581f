import { hash } from 'node:crypto'
import type { EventType, HostState } from '@slipway/contract'
import { gpuStateAfterReport, shapeOf } from '../domain/host-report.ts'
import { chunksOf } from '../domain/lists.ts'
import type { HostReport } from '../engines/engine.ts'
import { dropHolds, offerReportedGpus } from '../operations/capacity/offer.ts'
import type { Database, Tx } from '../postgres/database.ts'
import { holdLock } from '../postgres/locks.ts'
import { emit } from '../store/events/events.ts'
import {
  type HostChange,
  type KnownGpuRow,
  type LostHost,
  lockReportedHosts,
  markHostsDown,
  markSilentHostsDown,
  type ReportedGpu,
  type ReportedHost,
  type ReportRequest,
  type Silence,
  touchReports,
  writeReportedHosts,
} from '../store/fleet/host-reports.ts'
import { hasDownHosts, type Inspection } from '../store/fleet/inspections.ts'
import {
  hasRespondedWithin,
  recordEngineProblem,
  recordEngineResponse,
  silenceMs,
} from '../store/fleet/locations.ts'
import { findOutdatedHosts, hasVmsOnDownHosts } from '../store/network/firewall-queue.ts'

const reportsPerStatement = 1000
/**
 * How many hosts one transaction changes and locks: few enough that placements do not wait for long.
 */
const changesPerTransaction = 50

/** A report that differs from its host's previous one, or that comes from a host that is down. */
export interface ChangedReport {
  name: string
  fingerprint: string
  report: HostReport
}

/** Records the time of unchanged reports, and returns the changed reports. */
export async function findChangedReports(
  database: Database,
  location: string,
  reports: HostReport[],
  asked: ReportRequest,
): Promise<ChangedReport[]> {
  const changed: ChangedReport[] = []
  for (const part of chunksOf(reports, reportsPerStatement)) {
    const reported = part.map((report) => ({ name: report.name, fingerprint: fingerprintOf(report), report }))
    const repeated = await touchReports(database, location, reported, asked)
    changed.push(...reported.filter(({ name }) => !repeated.has(name)))
  }
  return changed
}

export async function applyChangedReports(
  database: Database,
  location: string,
  engineName: string,
  changed: ChangedReport[],
  asked: ReportRequest,
): Promise<void> {
  for (const part of chunksOf(changed, changesPerTransaction))
    await database.transaction((tx) => applyTogether(tx, location, engineName, part, asked))
}

async function applyTogether(
  tx: Tx,
  location: string,
  engineName: string,
  changed: ChangedReport[],
  asked: ReportRequest,
): Promise<void> {
  const names = changed.map(({ name }) => name)
  // Take this lock before the host locks, because its other holders may wait for the lock on a host.
  if (await hasVmsOnDownHosts(tx, location, names)) await holdLock(tx, 'returningHosts')
  const { hosts, gpus } = await lockReportedHosts(tx, location, names, { askedAt: asked.askedAt, silenceMs })
  const downIds = hosts.filter(({ state }) => state === 'down').map(({ id }) => id)
  const outdatedHosts = downIds.length > 0 ? await findOutdatedHosts(tx, downIds) : new Set()
  const reportByName = new Map(changed.map((one) => [one.name, one]))
  const changes = hosts.map((host) => {
    const { report, fingerprint } = reportByName.get(host.name)!
    const known = gpus.filter((gpu) => gpu.hostId === host.id)
    const { change, notices } = changeOf(host, known, report, host.is_late || outdatedHosts.has(host.id))
    const capabilities = { ...change.capabilities, engine: engineName }
    return { host, notices, row: { ...change, capabilities, fingerprint } }
  })
  const rows = changes.map(({ row }) => row)
  await writeReportedHosts(tx, rows, asked)
  await offerReportedGpus(
    tx,
    rows.map(({ id }) => id),
  )
  for (const { host, notices } of changes)
    for (const { type, data } of notices)
      await emitHost(tx, type, host.id, { name: host.name, location, ...data })
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
  const gpuAt = (pciAddress: string): ReportedGpu => {
    const knownGpu = knownAt.get(pciAddress) ?? null
    const reported = reportedAt.get(pciAddress)
    const { model, numaNode, iommuGroup } = reported ?? knownGpu!
    const state = gpuStateAfterReport(knownGpu, usableAt.get(pciAddress) ?? null)
    // A missing GPU counts as lost only if a VM has it: otherwise, it may have been taken out of the host on purpose.
    const isLost = reported ? reported.check?.passed === false : knownGpu?.state === 'claimed'
    return {
      ...{ hostId: host.id, pciAddress, model, numaNode, iommuGroup, state, isLost },
      hostXids: reported?.xids ? JSON.stringify(reported.xids) : null,
    }
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
    known: [...knownAt.keys()].map(gpuAt),
    found: [...reportedAt.keys()].filter((pciAddress) => !knownAt.has(pciAddress)).map(gpuAt),
  }
  const missingBefore = (host.capabilities.missing_gpus ?? []) as string[]
  const notices = missing
    .filter(({ pciAddress }) => !missingBefore.includes(pciAddress))
    .map(({ id, pciAddress, vmId }) => ({
      type: 'gpu.missing' as const,
      data: { gpu_id: id, pci_address: pciAddress, vm_id: vmId },
    }))
  if (host.state !== 'down' || isKeptDown) return { change, notices }
  return { change, notices: [{ type: 'host.up', data: { gpus: usable.length } }, ...notices] }
}

const emitHost = (tx: Tx, type: EventType, resourceId: string, data: Record<string, unknown>) =>
  emit(tx, { type, resourceType: 'host', resourceId, actor: 'system', requestId: '', data })

/**
 * A host that was draining continues to drain when it is up again. `isKeptDown` is set for a host whose
 * firewalls are not up to date, and for a report that is so old that its host already counts as silent.
 */
function stateAfterReport(host: ReportedHost, isKeptDown: boolean): HostState {
  if (host.state !== 'down' || isKeptDown) return host.state
  return host.is_draining ? 'draining' : 'up'
}

/**
 * The fingerprint covers the parts of a report that this file uses. VMs and resets of GPUs change often and are
 * processed elsewhere.
 */
function fingerprintOf({ cpuCores, memoryGb, isClosed = false, capabilities, gpus }: HostReport): string {
  const gpuFields = gpus
    .map(({ pciAddress, model, numaNode, iommuGroup, check, xids }) => [
      ...[pciAddress, model, numaNode, iommuGroup],
      // A healthy GPU has the same fingerprint as one that the host cannot check.
      ...(check?.passed === false || xids ? [check, xids] : []),
    ])
    .sort(([a], [b]) => (String(a) < String(b) ? -1 : 1))
  return hash('sha256', JSON.stringify([cpuCores, memoryGb, isClosed, capabilities, gpuFields]), 'base64url')
}

/** Marks hosts as down if they have not reported for `afterMs`. Returns their number. */
export const markLostHosts = (database: Database, afterMs: number, silence: Silence = {}): Promise<number> =>
  database.transaction((tx) => markSilentDown(tx, afterMs, silence))

/**
 * Ends an inspection of a location: records why its engine did not report everything ('' if it did), and
 * marks silent hosts as down. If the engine could not be read, its hosts do not count as silent for
 * `unreadMs` after its last inventory. Returns whether the engine reported everything and all hosts are up.
 */
export async function endInspection(
  database: Database,
  location: string,
  { inspection, problem, unreadMs }: { inspection: Inspection; problem: string; unreadMs: number },
): Promise<boolean> {
  return await database.transaction(async (tx) => {
    if (problem === '') await recordEngineResponse(tx, location)
    else await recordEngineProblem(tx, location, problem)
    if (unreadMs > 0 && (await hasRespondedWithin(tx, location, unreadMs))) return false
    await markSilentDown(tx, silenceMs, { locations: [location], inspection })
    return problem === '' && !(await hasDownHosts(tx, location))
  })
}

async function markSilentDown(tx: Tx, afterMs: number, silence: Silence): Promise<number> {
  const lost = await markSilentHostsDown(tx, afterMs, silence)
  await emitDown(tx, lost)
  return lost.length
}

/** Marks hosts as down if their engine reports them as unreachable. */
export async function markUnreachableHosts(
  database: Database,
  location: string,
  names: string[],
): Promise<void> {
  if (names.length > 0)
    await database.transaction(async (tx) => emitDown(tx, await markHostsDown(tx, location, names)))
}

async function emitDown(tx: Tx, lost: LostHost[]): Promise<void> {
  for (const { id, name, location } of lost) await emitHost(tx, 'host.down', id, { name, location })
  await dropHolds(
    tx,
    lost.map(({ id }) => id),
  )
}

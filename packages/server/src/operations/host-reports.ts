import { createHash } from 'node:crypto'
import type { HostState } from '@slipway/contract'
import { gpuStateAfterReport, shapeOf } from '../domain/host-report.ts'
import type { Database, Tx } from '../store/database.ts'
import { emitEvent } from '../store/events.ts'
import {
  type GpuPlace,
  lockReportedHost,
  loseSilentHosts,
  type ReportedHost,
  touchReports,
  writeReportedHost,
} from '../store/host-reports.ts'
import type { HostReport } from './engine.ts'

/** Small enough that one statement stays short, large enough that thousands of hosts take a few. */
const reportsPerStatement = 1000

/**
 * Brings the store to what an engine reports of its hosts. Answers how many reports said something new; the others
 * only had their time noted.
 */
export async function applyHostReports(
  database: Database,
  location: string,
  engineName: string,
  reports: HostReport[],
): Promise<number> {
  let changed = 0
  for (let start = 0; start < reports.length; start += reportsPerStatement) {
    const batch = reports
      .slice(start, start + reportsPerStatement)
      .map((report) => ({ name: report.name, fingerprint: fingerprintOf(report), report }))
    const repeated = await touchReports(database, location, batch)
    for (const { name, fingerprint, report } of batch) {
      if (repeated.has(name)) continue
      await database.transaction((tx) => applyReport(tx, location, engineName, report, fingerprint))
      changed++
    }
  }
  return changed
}

export const applyHostReport = (
  database: Database,
  location: string,
  engineName: string,
  report: HostReport,
): Promise<number> => applyHostReports(database, location, engineName, [report])

async function applyReport(
  tx: Tx,
  location: string,
  engineName: string,
  report: HostReport,
  fingerprint: string,
): Promise<void> {
  const { host, gpus: known } = await lockReportedHost(tx, location, report.name)
  const shape = shapeOf(report)
  const reportedAt = new Map(report.gpus.map((gpu) => [gpu.pciAddress, gpu]))
  const usableAt = new Map(shape.usable.map((gpu) => [gpu.pciAddress, gpu]))
  const knownAt = new Map(known.map((gpu) => [gpu.pciAddress, gpu]))
  const gpus = [...new Set([...reportedAt.keys(), ...knownAt.keys()])].map((pciAddress): GpuPlace => {
    const knownGpu = knownAt.get(pciAddress) ?? null
    const { model, numaNode, iommuGroup } = reportedAt.get(pciAddress) ?? knownGpu!
    const state = gpuStateAfterReport(knownGpu, usableAt.get(pciAddress) ?? null)
    return { pciAddress, model, numaNode, iommuGroup, state }
  })
  const missing = known.filter((gpu) => gpu.state === 'claimed' && !reportedAt.has(gpu.pciAddress))
  const capabilities = {
    ...report.capabilities,
    engine: engineName,
    cpu_cores: report.cpuCores,
    memory_gb: report.memoryGb,
    ...(shape.unusable.length > 0 && { unusable_gpus: shape.unusable }),
    ...(missing.length > 0 && { missing_gpus: missing.map((gpu) => gpu.pciAddress) }),
  }
  const { family, usableGpus } = shape
  const state = stateAfterReport(host)
  await writeReportedHost(tx, host.id, {
    family,
    usableGpus,
    capabilities,
    state,
    known: gpus.filter(({ pciAddress }) => knownAt.has(pciAddress)),
    found: gpus.filter(({ pciAddress }) => !knownAt.has(pciAddress)),
    fingerprint,
  })

  const tell = (type: string, data: Record<string, unknown>) =>
    emitEvent(tx, {
      type,
      resourceType: 'host',
      resourceId: host.id,
      actor: 'system',
      requestId: '',
      data: { name: report.name, location, ...data },
    })
  if (host.state === 'down') await tell('host.up', { gpus: shape.usable.length })
  const toldBefore = (host.capabilities.missing_gpus ?? []) as string[]
  for (const gpu of missing.filter(({ pciAddress }) => !toldBefore.includes(pciAddress)))
    await tell('gpu.missing', { gpu_id: gpu.id, pci_address: gpu.pciAddress, vm_id: gpu.vmId })
}

/** A host that was asked to drain goes on draining when it comes back; whether it is empty shows afterwards. */
function stateAfterReport(host: ReportedHost): HostState {
  if (host.state !== 'down') return host.state
  return host.is_draining ? 'draining' : 'up'
}

/** Of what this file uses of a report; holders and resets of GPUs change all the time and are read elsewhere. */
function fingerprintOf({ cpuCores, memoryGb, capabilities, gpus }: HostReport): string {
  const places = gpus
    .map(({ pciAddress, model, numaNode, iommuGroup }) => [pciAddress, model, numaNode, iommuGroup])
    .sort(([a], [b]) => (String(a) < String(b) ? -1 : 1))
  return createHash('sha256')
    .update(JSON.stringify([cpuCores, memoryGb, capabilities, places]))
    .digest('base64url')
}

/** Hosts that have not reported for so long take no more VMs. Answers how many were lost. */
export async function markLostHosts(database: Database, afterMs: number): Promise<number> {
  return database.transaction(async (tx) => {
    const lost = await loseSilentHosts(tx, afterMs)
    for (const { id, name, location } of lost)
      await emitEvent(tx, {
        type: 'host.down',
        resourceType: 'host',
        resourceId: id,
        actor: 'system',
        requestId: '',
        data: { name, location },
      })
    return lost.length
  })
}

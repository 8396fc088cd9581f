import type { FaultSource, HealthReason, HealthStatus, VmHealth } from '@slipway/contract'
import type { GuestGpu } from '../guest/report.ts'
import { rowRemapFailureOf } from '../guest/report.ts'
import { lostXid, meaningOf, type XidMeanings } from './xids.ts'

/** A GPU error, as the host or the guest reports it. */
export interface Fault {
  xid: number
  gpuIndex: number
  source: FaultSource
  /** In the API's timestamp format. */
  at: string
}

interface Circumstances {
  operatorMeanings: XidMeanings
  /**
   * True if, in the last 24 hours, the VM was reset at least twice and the GPU had an error that requires a reset. Errors since
   * the VM's last start do not count.
   */
  wasResetTwice: boolean
}

/** Limits the size of a VM's record, regardless of what its guest reports. */
const maxReasons = 32

/**
 * Returns the reason that events and the VM's health show for a fault. `action` is empty if nothing needs to
 * be done.
 */
export function reasonOf(fault: Fault, { operatorMeanings, wasResetTwice }: Circumstances): HealthReason {
  const { xid, gpuIndex, source, at } = fault
  const meaning = meaningOf(xid, operatorMeanings)
  const isBeyondReset = meaning === 'reset' && wasResetTwice
  const action = meaning === 'replace' || isBeyondReset ? 'REPLACE' : meaning === 'reset' ? 'RESET' : ''
  const code = xid === lostXid ? 'lost' : `xid_${xid}`
  return { code, gpu_index: gpuIndex, source, message: messageOf(fault, action, isBeyondReset), action, at }
}

function messageOf({ xid, gpuIndex, source }: Fault, action: HealthReason['action'], isAgain: boolean) {
  const gpu = `GPU ${gpuIndex}`
  if (xid === lostXid) return `${gpu} does not respond to its host. ${replaceIt}`
  const error = xid === 79 ? `${gpu} has fallen off the bus (XID 79)` : `${gpu} reported error XID ${xid}`
  const what = `${reportedBy(source)}${error}`
  if (action === 'REPLACE') return `${what}${isAgain ? ' again after two resets' : ''}. ${replaceIt}`
  if (action === 'RESET') return `${what}. Reset the VM.`
  return `${what}. The GPU is not at fault: nothing needs to be done.`
}

const replaceIt = 'Replace the VM to get another GPU.'
const reportedBy = (source: FaultSource): string => (source === 'guest' ? 'The guest reports that ' : '')

/** Returns reasons from the GPU states that the guest's driver reports, as opposed to single errors. */
export function driverReasons(gpus: GuestGpu[], at: string): HealthReason[] {
  return gpus.flatMap((gpu, gpu_index): HealthReason[] => {
    const common = { gpu_index, source: 'guest' as const, at }
    if (rowRemapFailureOf(gpu) === 1)
      return [
        {
          ...common,
          code: 'row_remap_failure',
          message: `${reportedBy('guest')}GPU ${gpu_index} cannot replace failed rows of its memory. ${replaceIt}`,
          action: 'REPLACE',
        },
      ]
    if (gpu.recovery === null || gpu.recovery === 'none') return []
    return [
      {
        ...common,
        code: 'recovery_action',
        message: `${reportedBy('guest')}GPU ${gpu_index} needs recovery (${gpu.recovery}). Reset the VM.`,
        action: 'RESET',
      },
    ]
  })
}

const isSameReason = (a: HealthReason, b: HealthReason) =>
  a.code === b.code && a.gpu_index === b.gpu_index && a.source === b.source

export const hasReason = (health: VmHealth | null, reason: HealthReason): boolean =>
  health?.reasons.some((known) => isSameReason(known, reason)) ?? false

/**
 * Removes the reasons of GPUs that need no recovery according to the guest's driver, which takes precedence
 * over the table of errors. Reasons that the host found, and reasons to replace a GPU, remain.
 */
export const withoutRecovered = (reasons: HealthReason[], gpus: GuestGpu[]): HealthReason[] =>
  reasons.filter(
    ({ source, action, gpu_index }) =>
      source === 'host' || action === 'REPLACE' || gpus[gpu_index]?.recovery !== 'none',
  )

const statusOf = (reasons: HealthReason[]): HealthStatus => {
  if (reasons.some(({ action }) => action === 'REPLACE')) return 'unhealthy'
  return reasons.length > 0 ? 'degraded' : 'healthy'
}

/**
 * Returns the health with these reasons; null if the VM is healthy. Reasons without an action are omitted.
 */
export function healthOf(before: VmHealth | null, reasons: HealthReason[], now: string): VmHealth | null {
  const kept = reasons.filter(({ action }) => action !== '').slice(-maxReasons)
  const status = statusOf(kept)
  if (status === 'healthy') return null
  return { status, since: before?.status === status ? before.since : now, reasons: kept }
}

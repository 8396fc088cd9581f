import { gpuMetricNames, type IdlePolicy, sampleSeconds } from '@slipway/contract'
import type { GuestReport } from './report.ts'

/** The time between the announcement of a stop and the stop. */
export const warnedAheadS = 600
/** The share of the window that must have samples. */
export const coveredShare = 0.9

const utilization = gpuMetricNames.indexOf('DCGM_FI_DEV_GPU_UTIL')

/**
 * Classifies one sample. A sample is idle only if every GPU of the VM is known to be below the limit, and the
 * guest reports that no SSH session is open. Without a report, the result is unknown.
 */
export function classifySample(
  { min_gpu_utilization, ignore_ssh }: IdlePolicy,
  gpuCount: number,
  report: GuestReport | null,
): 'idle' | 'busy' | 'unknown' {
  if (!report) return 'unknown'
  const loads = report.gpus.map(({ values }) => values[utilization] ?? null)
  const isBelow =
    loads.length >= gpuCount && loads.every((load) => load !== null && load < min_gpu_utilization)
  return isBelow && (ignore_ssh || report.sshSessions === 0) ? 'idle' : 'busy'
}

/** Returns whether this number of samples covers the window well enough. */
export const coversWindow = (samples: number, { window_seconds }: IdlePolicy): boolean =>
  samples >= Math.floor((window_seconds / sampleSeconds) * coveredShare)

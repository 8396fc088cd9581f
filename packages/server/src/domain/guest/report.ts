import { gpuMetricNames } from '@slipway/contract'

export type Value = number | null

/** A GPU as the guest sees it. `values` are in the order of `gpuMetricNames`. */
export interface GuestGpu {
  uuid: string
  name: string
  values: Value[]
  /**
   * The recovery action that the driver reports, such as `none`, `reset` or `reboot`. Null if the driver
   * reports no value.
   */
  recovery: string | null
}

/** An XID error in the guest's kernel log. */
export interface GuestXid {
  gpuIndex: number
  xid: number
  /** The position in the log of this boot. Later errors have higher positions. */
  position: number
}

/** What a guest reports about itself. Guests are not trusted, so the report may be false. */
export interface GuestReport {
  /** Null if unknown. */
  sshSessions: Value
  gpus: GuestGpu[]
  /** Identifies the boot of the guest. */
  boot: string
  xids: GuestXid[]
}

export const maxReportBytes = 16 * 1024
const maxGpus = 16
const maxValue = 1e12
const maxText = 80
const maxXids = 16
const maxXid = 999

/** Parses one line from the reporter in the guest. Returns null for anything that is not a valid report. */
export function parseGuestReport(line: string): GuestReport | null {
  if (Buffer.byteLength(line) > maxReportBytes) return null
  let parsed: unknown
  try {
    parsed = JSON.parse(line)
  } catch {
    return null
  }
  if (!isRecord(parsed) || parsed.slipway_guest !== 1 || !Array.isArray(parsed.gpus)) return null
  const gpus = parsed.gpus.slice(0, maxGpus).filter(isRecord)
  return {
    sshSessions: countOf(parsed.ssh_sessions),
    gpus: gpus.map((gpu) => ({
      uuid: textOf(gpu.uuid),
      name: textOf(gpu.name),
      values: gpuMetricNames.map((name) => numberOf(gpu[name])),
      recovery: typeof gpu.recovery === 'string' ? textOf(gpu.recovery).toLowerCase() : null,
    })),
    boot: textOf(parsed.boot),
    xids: Array.isArray(parsed.xids) ? parsed.xids.slice(-maxXids).flatMap(xidOf) : [],
  }
}

function xidOf(entry: unknown): GuestXid[] {
  if (!isRecord(entry)) return []
  const [gpuIndex, xid, position] = [countOf(entry.gpu), countOf(entry.xid), countOf(entry.position)]
  const isValid = gpuIndex !== null && gpuIndex < maxGpus && xid !== null && xid > 0 && xid <= maxXid
  return isValid && position !== null ? [{ gpuIndex, xid, position }] : []
}

const rowRemapFailure = gpuMetricNames.indexOf('DCGM_FI_DEV_ROW_REMAP_FAILURE')

/** The value is 1 if the GPU has failed to replace a row of its memory. */
export const rowRemapFailureOf = ({ values }: GuestGpu): Value => values[rowRemapFailure] ?? null

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const numberOf = (value: unknown): Value =>
  typeof value === 'number' && value >= 0 && value <= maxValue ? value : null

function countOf(value: unknown): Value {
  const number = numberOf(value)
  return number === null ? null : Math.floor(number)
}

/** Accepts only printable ASCII, because the text becomes a metric label and is shown in terminals. */
const textOf = (value: unknown): string =>
  typeof value === 'string' && /^[ -~]*$/.test(value) ? value.slice(0, maxText).replace(/["\\]/g, '') : ''

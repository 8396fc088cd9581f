import { gpuMetricNames } from '@slipway/contract'

export type Value = number | null

/** A GPU as the guest sees it. `values` are in the order of `gpuMetricNames`. */
export interface GuestGpu {
  uuid: string
  name: string
  values: Value[]
}

/** What a guest says about itself. Guests are not trusted: it may be false. */
export interface GuestReport {
  /** Null if the guest does not know. */
  sshSessions: Value
  gpus: GuestGpu[]
}

export const maxReportBytes = 16 * 1024
const maxGpus = 16
const maxValue = 1e12
const maxText = 80

/** Reads one line of the reporter in the guest. Returns null for anything else, whatever a guest may send. */
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
    })),
  }
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const numberOf = (value: unknown): Value =>
  typeof value === 'number' && value >= 0 && value <= maxValue ? value : null

function countOf(value: unknown): Value {
  const number = numberOf(value)
  return number === null ? null : Math.floor(number)
}

/** Printable ASCII only: the text becomes a label, and is shown in terminals. */
const textOf = (value: unknown): string =>
  typeof value === 'string' && /^[ -~]*$/.test(value) ? value.slice(0, maxText).replace(/["\\]/g, '') : ''

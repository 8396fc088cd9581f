import { sshKeyLine } from '@slipway/contract/ssh-key'
import type { Value } from '../values/types.ts'

/** Returns whether two values mean the same, even if they are written differently. */
type Comparison = (left: Value, right: Value) => boolean

const by =
  (read: (text: string) => unknown): Comparison =>
  (left, right) =>
    typeof left === 'string' && typeof right === 'string' && read(left) === read(right)

export const gibOf = (size: string): number => Number.parseInt(size, 10) * (size.endsWith('TiB') ? 1024 : 1)

export const sameSize = by(gibOf)
/** A name without a version means `:latest`. */
export const sameImage = by((image) => (image.includes(':') ? image : `${image}:latest`))
export const sameKey = by((key) => sshKeyLine(key).trim())
export const sameInstant = by((time) => Date.parse(time))
export const sameId = by((id) => id.toLowerCase())

/** Compares endpoints of a firewall rule: an address is the same as its /32 block. */
export const sameEndpoints: Comparison = (left, right) => endpointsText(left) === endpointsText(right)

function endpointsText(endpoints: Value): string {
  if (!Array.isArray(endpoints)) return ''
  const texts = endpoints.map((endpoint) => {
    const { cidr, resource_id } = (endpoint ?? {}) as { cidr?: string | null; resource_id?: string | null }
    return cidr ? cidr.replace(/\/32$/, '') : String(resource_id ?? '').toLowerCase()
  })
  return texts.toSorted().join()
}

export interface HostCandidate {
  id: string
  freeGpus: number
  /** The largest number of free GPUs on one of its NUMA nodes. */
  maxNodeFree: number
}

/** The order in which hosts that fit are tried: NUMA-local first, then the fullest, then by id. */
export function compareHosts(count: number): (a: HostCandidate, b: HostCandidate) => number {
  const rank = (host: HostCandidate) => [host.maxNodeFree >= count ? 0 : 1, host.freeGpus, host.id] as const
  return (a, b) => (a.id === b.id ? 0 : isLess(rank(a), rank(b)) ? -1 : 1)
}

/** The host that the SQL statement must choose. */
export function chooseHost<T extends HostCandidate>(candidates: T[], count: number): T | null {
  return candidates.filter((host) => host.freeGpus >= count).sort(compareHosts(count))[0] ?? null
}

/** How many VMs of `count` GPUs fit now. */
export function capacityOf(candidates: { freeGpus: number }[], count: number): number {
  return candidates.reduce((sum, host) => sum + Math.floor(host.freeGpus / count), 0)
}

function isLess<T extends readonly (number | string)[]>(a: T, b: T): boolean {
  const at = a.findIndex((value, i) => value !== b[i])
  return at >= 0 && a[at]! < b[at]!
}

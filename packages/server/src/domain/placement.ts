import { groupBy } from './lists.ts'

export interface FreeGpu {
  id: string
  pciAddress: string
  numaNode: number
  /** GPUs of one group can only be passed through together; null where there are no groups. */
  iommuGroup: number | null
}

/** Alternatives for one part of a host: each is a set of GPUs to take from it, possibly empty. */
type Part = FreeGpu[][]

function byPciAddress(a: FreeGpu, b: FreeGpu): number {
  return a.pciAddress < b.pciAddress ? -1 : 1
}

/**
 * A group of several GPUs is taken whole or not at all. The other GPUs of a node are alike, so only their number is a
 * choice and they are taken in order of address: few combinations are left to try.
 */
function partsOf(free: FreeGpu[], count: number): Part[] {
  const groups = groupBy(free, (gpu) => (gpu.iommuGroup === null ? gpu.id : gpu.iommuGroup))
  const shared = [...groups.values()].filter((group) => group.length > 1)
  const single = [...groups.values()].filter((group) => group.length === 1).flat()
  const nodes = [...groupBy(single.sort(byPciAddress), (gpu) => gpu.numaNode).values()]
  return [
    ...nodes.map((gpus) =>
      Array.from({ length: Math.min(count, gpus.length) + 1 }, (_, taken) => gpus.slice(0, taken)),
    ),
    ...shared.map((group) => [[], group]),
  ]
}

function* combinations(parts: Part[], count: number): Generator<FreeGpu[]> {
  const [part, ...rest] = parts
  if (!part) {
    if (count === 0) yield []
    return
  }
  for (const taken of part) {
    if (taken.length > count) continue
    for (const others of combinations(rest, count - taken.length)) yield [...taken, ...others]
  }
}

/**
 * The GPUs for one VM among those free on a host (of a partly free IOMMU group the caller offers none): on the fewest
 * NUMA nodes, then such that what stays free is as concentrated as it can be (the tightest node that fits, so that
 * larger VMs still find a whole one), then by PCI address. Null when no choice gives exactly `count`.
 */
export function chooseGpus(free: FreeGpu[], count: number): FreeGpu[] | null {
  const freePerNode = groupBy(free, (gpu) => gpu.numaNode)
  let best: { chosen: FreeGpu[]; rank: [nodes: number, scattered: number, addresses: string] } | null = null
  for (const combination of combinations(partsOf(free, count), count)) {
    const chosen = combination.sort(byPciAddress)
    const takenPerNode = groupBy(chosen, (gpu) => gpu.numaNode)
    let concentration = 0
    for (const [node, gpus] of freePerNode) {
      concentration += (gpus.length - (takenPerNode.get(node)?.length ?? 0)) ** 2
    }
    const addresses = chosen.map((gpu) => gpu.pciAddress).join()
    const rank: [number, number, string] = [takenPerNode.size, -concentration, addresses]
    if (!best || isLess(rank, best.rank)) best = { chosen, rank }
  }
  return best?.chosen ?? null
}

function isLess<T extends readonly (number | string)[]>(a: T, b: T): boolean {
  const at = a.findIndex((value, i) => value !== b[i])
  return at >= 0 && a[at]! < b[at]!
}

/** A host that this transaction has locked, and what is left of it. */
export interface OpenHost {
  id: string
  name: string
  location: string
  family: string
  /** May be less than the GPUs that are free: cores and memory serve no more. */
  freeGpus: number
  gpus: FreeGpu[]
}

/** What one VM wants of them. */
export interface WantedGpus {
  location: string
  family: string
  gpuCount: number
  allowedHosts: string[] | null
}

/**
 * Takes GPUs for one VM off the best of the hosts: one that keeps it inside one NUMA node before others, then the
 * fullest, then the first by id. Undefined when it fits on none; `isInOneNode`: on none inside one node.
 */
export function takeGpus(
  hosts: OpenHost[],
  wanted: WantedGpus,
  isInOneNode: boolean,
): { hostId: string; gpuIds: string[] } | undefined {
  const { gpuCount, allowedHosts } = wanted
  const fitting = hosts.filter(
    (host) =>
      host.location === wanted.location &&
      host.family === wanted.family &&
      host.freeGpus >= gpuCount &&
      (!isInOneNode || maxNodeFree(host) >= gpuCount) &&
      (!allowedHosts || allowedHosts.includes(host.id)),
  )
  const rank = (host: OpenHost) =>
    [maxNodeFree(host) >= gpuCount ? 0 : 1, host.freeGpus, host.id] as [number, number, string]
  const ranked = fitting.map((host) => ({ host, rank: rank(host) }))
  for (const { host } of ranked.sort((a, b) => (isLess(a.rank, b.rank) ? -1 : 1))) {
    const chosen = chooseGpus(host.gpus, gpuCount)
    if (!chosen) continue
    host.freeGpus -= gpuCount
    host.gpus = host.gpus.filter((gpu) => !chosen.includes(gpu))
    return { hostId: host.id, gpuIds: chosen.map(({ id }) => id) }
  }
  return undefined
}

const maxNodeFree = (host: OpenHost): number =>
  Math.min(
    host.freeGpus,
    Math.max(0, ...[...groupBy(host.gpus, (gpu) => gpu.numaNode).values()].map((gpus) => gpus.length)),
  )

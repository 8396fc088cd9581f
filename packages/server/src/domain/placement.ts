import { groupBy } from './lists.ts'

export interface FreeGpu {
  id: string
  pciAddress: string
  numaNode: number
  /** GPUs of one IOMMU group can only be passed through together; null if the host has no groups. */
  iommuGroup: number | null
}

/** The alternatives for one part of a host. Each alternative is a set of GPUs, which may be empty. */
type Part = FreeGpu[][]

function byPciAddress(a: FreeGpu, b: FreeGpu): number {
  return a.pciAddress < b.pciAddress ? -1 : 1
}

/**
 * An IOMMU group with several GPUs is taken as a whole or not at all. The other GPUs of a node are
 * equivalent: they are taken in the order of their addresses, and only their number varies. This leaves few
 * combinations to try.
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
 * Chooses GPUs for one VM from the free GPUs of a host. The caller omits IOMMU groups that are partly in use.
 * Prefers the fewest NUMA nodes, then the choice that leaves the free GPUs most concentrated (so that larger
 * VMs still find a whole node), then the lowest PCI addresses. Returns null if no choice has exactly `count`
 * GPUs.
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

/** A host that this transaction has locked, with its free GPUs. */
export interface OpenHost {
  id: string
  name: string
  location: string
  family: string
  /** May be less than the length of `gpus` if the host has too few cores or too little memory. */
  freeGpus: number
  gpus: FreeGpu[]
}

interface WantedGpus {
  location: string
  family: string
  gpuCount: number
  allowedHosts: string[] | null
}

/**
 * Takes GPUs for one VM from the best host. Hosts where the VM fits into one NUMA node come first, then the
 * fullest, then the first by id. With `isInOneNode`, all GPUs must be in one NUMA node. Returns undefined if
 * the VM fits on no host.
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

/**
 * Places up to `count` identical VMs on these hosts. `spread` places each VM on a separate host, and `pack`
 * uses as few hosts as possible. Otherwise each VM gets the host that is best for it alone.
 */
export function placeGroup(
  hosts: OpenHost[],
  wanted: WantedGpus,
  count: number,
  policy: 'unspecified' | 'spread' | 'pack',
): { hostId: string; gpuIds: string[] }[] {
  const placed: { hostId: string; gpuIds: string[] }[] = []
  let candidates = policy === 'pack' ? hosts.toSorted((a, b) => b.freeGpus - a.freeGpus) : hosts
  while (placed.length < count && candidates.length > 0) {
    const placement = takeGpus(policy === 'pack' ? candidates.slice(0, 1) : candidates, wanted, false)
    if (placement) placed.push(placement)
    if (policy === 'pack' && !placement) candidates = candidates.slice(1)
    else if (!placement) break
    else if (policy === 'spread') candidates = candidates.filter(({ id }) => id !== placement.hostId)
  }
  return placed
}

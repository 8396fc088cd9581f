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

function groupBy<K>(gpus: FreeGpu[], key: (gpu: FreeGpu) => K): Map<K, FreeGpu[]> {
  const groups = new Map<K, FreeGpu[]>()
  for (const gpu of gpus) groups.set(key(gpu), [...(groups.get(key(gpu)) ?? []), gpu])
  return groups
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

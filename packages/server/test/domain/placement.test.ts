import fc from 'fast-check'
import { expect, test } from 'vitest'
import { chooseGpus, type FreeGpu } from '../../src/domain/placement.ts'
import { capacityOf, chooseHost, compareHosts, type HostCandidate } from '../support/placement-rules.ts'

function gpu(index: number, numaNode: number, iommuGroup: number | null = null): FreeGpu {
  return { id: `gpu-${index}`, pciAddress: `0000:${(index + 16).toString(16)}:00.0`, numaNode, iommuGroup }
}

const indexes = (gpus: FreeGpu[] | null) => gpus?.map((g) => Number(g.id.slice(4))) ?? null
const subsetsOf = <T>(items: T[]): T[][] =>
  Array.from({ length: 2 ** items.length }, (_, bits) => items.filter((_item, i) => (bits >> i) & 1))

const twoNodes = [0, 1, 2, 3].map((i) => gpu(i, 0)).concat([4, 5, 6, 7].map((i) => gpu(i, 1)))

test('chooseGpus stays inside one NUMA node where it can', () => {
  expect(indexes(chooseGpus(twoNodes, 4))).toEqual([0, 1, 2, 3])
  expect(indexes(chooseGpus(twoNodes.slice(1), 4))).toEqual([4, 5, 6, 7])
  expect(indexes(chooseGpus(twoNodes, 8))).toEqual([0, 1, 2, 3, 4, 5, 6, 7])
})

test('chooseGpus prefers the node with fewer free GPUs if they are enough, so that the other node stays whole', () => {
  expect(indexes(chooseGpus(twoNodes.slice(2), 1))).toEqual([2])
  expect(indexes(chooseGpus(twoNodes.slice(2), 2))).toEqual([2, 3])
  expect(indexes(chooseGpus(twoNodes.slice(0, 6), 1))).toEqual([4])
})

test('chooseGpus empties one node first when it must span two', () => {
  expect(
    indexes(
      chooseGpus(
        [0, 1, 2, 4, 5, 6].map((i) => twoNodes[i]!),
        4,
      ),
    ),
  ).toEqual([0, 1, 2, 4])
})

test('chooseGpus takes IOMMU groups of several GPUs completely or not at all', () => {
  const paired = [gpu(0, 0, 1), gpu(1, 0, 1), gpu(2, 0, 2), gpu(3, 0, 2), gpu(4, 1, 3)]
  expect(indexes(chooseGpus(paired, 1))).toEqual([4])
  expect(indexes(chooseGpus(paired, 2))).toEqual([0, 1])
  expect(indexes(chooseGpus(paired, 3))).toEqual([0, 1, 4])
  expect(chooseGpus(paired.slice(0, 4), 3)).toBeNull()
})

test('chooseGpus returns null when there are too few', () => {
  expect(chooseGpus(twoNodes, 9)).toBeNull()
  expect(chooseGpus([], 1)).toBeNull()
})

test('chooseGpus finds the same set as an exhaustive search, regardless of the input order', () => {
  const anyFree = fc
    .array(fc.tuple(fc.integer({ min: -1, max: 2 }), fc.option(fc.nat(4), { nil: null })), { maxLength: 9 })
    .map((gpus) => gpus.map(([node, group], i) => gpu(i, node, group)))
  const withShuffle = anyFree.chain((free) =>
    fc.tuple(fc.constant(free), fc.shuffledSubarray(free, { minLength: free.length })),
  )
  fc.assert(
    fc.property(withShuffle, fc.integer({ min: 1, max: 8 }), ([free, shuffled], count) => {
      const spread = (set: FreeGpu[]) => new Set(set.map((g) => g.numaNode)).size
      const restSquared = (set: FreeGpu[]) =>
        [-1, 0, 1, 2].reduce(
          (sum, node) => sum + free.filter((g) => g.numaNode === node && !set.includes(g)).length ** 2,
          0,
        )
      const isWhole = (set: FreeGpu[]) =>
        set.every(
          (g) => g.iommuGroup === null || free.every((f) => f.iommuGroup !== g.iommuGroup || set.includes(f)),
        )
      const [best] = subsetsOf(free)
        .filter((set) => set.length === count && isWhole(set))
        .sort(
          (a, b) =>
            spread(a) - spread(b) ||
            restSquared(b) - restSquared(a) ||
            (a.map((g) => g.pciAddress).join() < b.map((g) => g.pciAddress).join() ? -1 : 1),
        )
      expect(indexes(chooseGpus(shuffled, count))).toEqual(indexes(best ?? null))
    }),
    { numRuns: 300 },
  )
})

const host = (id: string, freeGpus: number, maxNodeFree = Math.min(freeGpus, 4)): HostCandidate => ({
  id,
  freeGpus,
  maxNodeFree,
})

test.each([
  ['the fullest host that fits', [host('a', 8), host('b', 3), host('c', 2), host('d', 1)], 2, 'c'],
  ['a host with room on one NUMA node rather than a fuller one', [host('a', 4, 3), host('b', 8, 4)], 4, 'b'],
  [
    'the fullest host if none has room on one NUMA node',
    [host('a', 7, 3), host('b', 4, 2), host('c', 3, 3)],
    4,
    'b',
  ],
  ['the host with the lowest id if all else is equal', [host('b', 4), host('a', 4)], 4, 'a'],
  ['no host if none fits', [host('a', 3), host('b', 0)], 4, null],
])('chooseHost chooses %s', (_which, hosts, count, id) => {
  expect(chooseHost(hosts, count)?.id ?? null).toBe(id)
})

const anyHosts = fc.uniqueArray(
  fc.tuple(fc.nat(20), fc.nat(8), fc.nat(8)).map(([id, x, y]) => host(`h${id}`, x + y, Math.max(x, y))),
  { selector: (h) => h.id, maxLength: 8 },
)
const anyCount = fc.constantFrom(1, 2, 4, 8, 10)

test('compareHosts is a strict order', () => {
  fc.assert(
    fc.property(anyHosts, anyCount, (hosts, count) => {
      const compare = compareHosts(count)
      const sorted = hosts.toSorted(compare)
      sorted.forEach((a, i) => {
        sorted.forEach((b, j) => {
          expect(Math.sign(compare(a, b))).toBe(Math.sign(i - j))
        })
      })
    }),
  )
})

test('chooseHost finds a host exactly as many times as capacityOf reports', () => {
  fc.assert(
    fc.property(anyHosts, anyCount, (hosts, count) => {
      const capacity = capacityOf(hosts, count)
      let left = hosts
      for (let placed = 0; placed < capacity; placed++) {
        const chosen = chooseHost(left, count)!
        left = left.map((h) => (h.id === chosen.id ? { ...h, freeGpus: h.freeGpus - count } : h))
      }
      expect(chooseHost(left, count)).toBeNull()
    }),
  )
})

import fc from 'fast-check'
import { expect, test } from 'vitest'
import { chooseGpus, type FreeGpu } from '../../src/domain/placement.ts'
import { chooseHost, type HostCandidate } from '../support/placement-rules.ts'

/**
 * VMs are created and deleted on a few hosts with 8 GPUs on two NUMA nodes. A placed VM never moves, and a VM that fits
 * somewhere is always accepted, as the service promises. The tests compare our placement with the best possible choice
 * of hosts, which is made with knowledge of all future requests.
 */
const GPUS_PER_HOST = 8
const SIZES = [1, 2, 4, 8]

interface Arrival {
  kind: 'arrival'
  vm: number
  size: number
}
interface Departure {
  kind: 'departure'
  vm: number
}
type Life = (Arrival | Departure)[]

const sizeMixes = fc.constantFrom([1, 1, 1, 1], [8, 4, 2, 1], [1, 1, 2, 2])
const anyLife = fc
  .record({
    weights: sizeMixes,
    departurePercent: fc.noBias(fc.integer({ min: 35, max: 50 })),
    steps: fc.noBias(
      fc.array(fc.tuple(fc.nat(99), fc.nat(9999)), { minLength: 12, maxLength: 24, size: 'max' }),
    ),
  })
  .map(({ weights, departurePercent, steps }) => {
    const life: Life = []
    const living: number[] = []
    for (const [percent, draw] of steps) {
      if (living.length > 0 && percent < departurePercent) {
        life.push({ kind: 'departure', vm: living.splice(draw % living.length, 1)[0]! })
        continue
      }
      const bag = weights.flatMap((weight, i) => Array<number>(weight).fill(SIZES[i]!))
      living.push(life.length)
      life.push({ kind: 'arrival', vm: life.length, size: bag[draw % bag.length]! })
    }
    return life
  })

interface Outcome {
  gpusPlaced: number
  refusals: number
  /** VMs of up to 4 GPUs that span NUMA nodes although some host had room for them on one. */
  needlessSplits: number
}

type ChooseHost = <T extends HostCandidate>(candidates: T[], count: number) => T | null

function simulate(life: Life, hostCount: number, choose: ChooseHost): Outcome {
  const free = Array.from({ length: hostCount }, () =>
    Array.from({ length: GPUS_PER_HOST }, (_, i): FreeGpu => {
      return { id: `${i}`, pciAddress: `0000:0${i}:00.0`, numaNode: Math.floor(i / 4), iommuGroup: null }
    }),
  )
  const onNode = (gpus: FreeGpu[], node: number) => gpus.filter((gpu) => gpu.numaNode === node).length
  const placed = new Map<number, { host: number; gpus: FreeGpu[] }>()
  const outcome: Outcome = { gpusPlaced: 0, refusals: 0, needlessSplits: 0 }
  for (const step of life) {
    if (step.kind === 'departure') {
      const left = placed.get(step.vm)
      if (left) free[left.host]!.push(...left.gpus)
      continue
    }
    const candidates = free.map((gpus, i) => ({
      id: `host-${i}`,
      index: i,
      freeGpus: gpus.length,
      maxNodeFree: Math.max(onNode(gpus, 0), onNode(gpus, 1)),
    }))
    const host = choose(candidates, step.size)?.index
    if (host === undefined) {
      outcome.refusals++
      continue
    }
    const gpus = chooseGpus(free[host]!, step.size)!
    const isSplit = onNode(gpus, 0) > 0 && onNode(gpus, 1) > 0
    if (isSplit && candidates.some((candidate) => candidate.maxNodeFree >= step.size))
      outcome.needlessSplits++
    free[host] = free[host]!.filter((gpu) => !gpus.includes(gpu))
    placed.set(step.vm, { host, gpus })
    outcome.gpusPlaced += step.size
  }
  return outcome
}

/**
 * Follows every possible choice of host in parallel. States that differ only in the names of hosts are
 * merged.
 */
function mostGpusPlaced(life: Life, hostCount: number): number {
  const sizeOf = (vm: number) => (life[vm] as Arrival).size
  const usedOn = (host: number[]) => host.reduce((sum, vm) => sum + sizeOf(vm), 0)
  let states = new Map<string, { hosts: number[][]; gpusPlaced: number }>()
  states.set('', { hosts: Array.from({ length: hostCount }, () => []), gpusPlaced: 0 })
  for (const step of life) {
    const next: typeof states = new Map()
    const reach = (hosts: number[][], gpusPlaced: number) => {
      const key = hosts.map(String).sort().join('|')
      if ((next.get(key)?.gpusPlaced ?? -1) < gpusPlaced) next.set(key, { hosts, gpusPlaced })
    }
    for (const { hosts, gpusPlaced } of states.values()) {
      if (step.kind === 'departure') {
        reach(
          hosts.map((host) => host.filter((vm) => vm !== step.vm)),
          gpusPlaced,
        )
        continue
      }
      const fitting = hosts.flatMap((host, i) => (usedOn(host) + step.size <= GPUS_PER_HOST ? [i] : []))
      if (fitting.length === 0) reach(hosts, gpusPlaced)
      for (const chosen of fitting) {
        reach(
          hosts.map((host, i) => (i === chosen ? [...host, step.vm] : host)),
          gpusPlaced + step.size,
        )
      }
    }
    states = next
  }
  return Math.max(...[...states.values()].map((state) => state.gpusPlaced))
}

const runs = fc.sample(fc.tuple(anyLife, fc.integer({ min: 2, max: 3 })), { numRuns: 600, seed: 20_261_115 })
const ours = runs.map(([life, hostCount]) => simulate(life, hostCount, chooseHost))
const gpusPossible = runs.reduce((sum, [life, hostCount], i) => {
  const { refusals, gpusPlaced } = ours[i]!
  return sum + (refusals === 0 ? gpusPlaced : mostGpusPlaced(life, hostCount))
}, 0)
const shareOf = (outcomes: Outcome[]) =>
  outcomes.reduce((sum, { gpusPlaced }) => sum + gpusPlaced, 0) / gpusPossible

test('placement fills at least 98 % of the GPUs that an exhaustive search fills', () => {
  expect(shareOf(ours)).toBeGreaterThanOrEqual(0.98)
})

test('placement splits no VM over NUMA nodes while another host has room for it on one', () => {
  expect(ours.reduce((sum, { needlessSplits }) => sum + needlessSplits, 0)).toBe(0)
})

test('choosing the emptiest host first would fill clearly fewer GPUs', () => {
  const emptiest: ChooseHost = (candidates, count) =>
    candidates.filter((host) => host.freeGpus >= count).sort((a, b) => b.freeGpus - a.freeGpus)[0] ?? null
  expect(shareOf(runs.map(([life, hostCount]) => simulate(life, hostCount, emptiest)))).toBeLessThan(0.95)
})

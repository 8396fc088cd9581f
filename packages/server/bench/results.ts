import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { availableParallelism, cpus, release, totalmem } from 'node:os'
import { join } from 'node:path'
import { root } from '@slipway/testing/root.ts'
import type { Figure, Group } from './figures.ts'
import { pageOf } from './html/page.ts'
import { readerName } from './load.ts'

export interface Machine {
  cpu: string
  cores: number
  memoryGb: number
  kernel: string
  node: string
  postgres: string
}

/** One run of a measurement, on one machine. */
export interface Run {
  at: string
  machine: Machine
  isQuick: boolean
  /** The client that made the reads. */
  reader: string
}

export interface ServiceRun extends Run {
  figures: Partial<Record<Group, Figure[]>>
}

export interface GrowRun extends Run {
  /** A scale of 1 means a million VMs. */
  scale: number
  rows: Record<string, number>
  fillSeconds: number
  sizeGb: number
  pairs: Pair[]
}

/** One figure on the small and on the large database. */
export interface Pair {
  small: Figure
  grown: Figure
  /** How many times slower the large database is. */
  factor: number
}

export interface Results {
  service?: ServiceRun
  grow?: GrowRun
}

const file = (name: string) => join(root, 'artifacts', name)

export function readResults(): Results {
  try {
    return JSON.parse(readFileSync(file('bench.json'), 'utf8'))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return {}
    throw error
  }
}

/** Adds a run to the results of earlier measurements, and writes the page again. */
export function saveResults(run: Results): void {
  const results = { ...readResults(), ...run }
  mkdirSync(join(root, 'artifacts'), { recursive: true })
  writeFileSync(file('bench.json'), `${JSON.stringify(results, null, 2)}\n`)
  writeFileSync(file('bench.html'), pageOf(results))
  console.error('\n  wrote artifacts/bench.json and artifacts/bench.html')
}

export const runNow = (postgres: string, isQuick: boolean): Run => ({
  at: new Date().toISOString(),
  isQuick,
  reader: readerName,
  machine: {
    cpu: cpus()[0]?.model.trim() ?? '',
    cores: availableParallelism(),
    memoryGb: Math.round(totalmem() / 2 ** 30),
    kernel: release(),
    node: process.versions.node,
    postgres,
  },
})

import { randomUUID } from 'node:crypto'
import { eventually } from '@slipway/testing/eventually.ts'
import { expect } from 'vitest'
import type { EngineError, HostReport, VmSpec, WantedState } from '../../../src/engines/engine.ts'
import type { IncusEngine } from '../../../src/engines/incus/engine.ts'
import { ConformanceBench } from '../conformance-bench.ts'
import { IncusBench } from '../incus-bench.ts'

const image = { name: 'guest:latest', source: { alias: 'guest:latest' } }
export const patienceMs = 120_000
export const wanted: WantedState = { power: 'on', firewall: { rules: [], generation: 1 } }

/** Repeats the work while the engine is unavailable, and returns its result. */
export const retrying = <T>(work: () => Promise<T>): Promise<T> =>
  eventually(async () => {
    try {
      return { value: await work() }
    } catch (error) {
      expect(error).toMatchObject({ kind: 'unavailable' })
      return null
    }
  }, patienceMs).then(({ value }) => value)

/** Repeats the work while the engine is unavailable, and returns the error with which the engine refuses it. */
export const untilRefused = (work: () => Promise<unknown>): Promise<EngineError> =>
  retrying(() =>
    work().then(
      () => expect.fail('the work succeeded'),
      (error) => {
        if (error.kind === 'unavailable') throw error
        return error
      },
    ),
  )

/** Three members, and an engine connected to the first. */
export class ClusterBench {
  readonly bench: IncusBench
  readonly engine: IncusEngine
  readonly signal = AbortSignal.timeout(900_000)
  readonly #template: VmSpec
  #count = 0

  private constructor(bench: IncusBench, engine: IncusEngine, template: VmSpec) {
    this.bench = bench
    this.engine = engine
    this.#template = template
  }

  static async open({ hasAgents = true } = {}): Promise<ClusterBench> {
    const bench = await IncusBench.cluster(3)
    if (hasAgents) await bench.startAgents()
    const engine = await bench.engine()
    const subject = { engine, host: 'm1', image, close: async () => {} }
    return new ClusterBench(bench, engine, (await ConformanceBench.open(subject)).spec)
  }

  get members() {
    return this.bench.members
  }

  at = (generation: number) => ({ generation, signal: this.signal })

  /** Opens another worker's engine, connected to this member. */
  workerAt = (index: number) => this.bench.engine(this.bench.config({ socket: this.members[index]!.socket }))

  specOn(host: string): VmSpec {
    const number = ++this.#count
    const network = {
      ...this.#template.network,
      macAddress: `52:54:00:c0:f2:${number.toString(16).padStart(2, '0')}`,
      privateAddress: `172.27.0.${30 + number}`,
      publicAddress: '',
    }
    return { ...this.#template, id: randomUUID(), host, network }
  }

  /** Returns the reports of the members that respond. */
  async reports(): Promise<Map<string, HostReport>> {
    const found = new Map<string, HostReport>()
    for await (const report of this.engine.inventory(this.signal))
      if (!report.isUnreachable) found.set(report.name, report)
    return found
  }

  everyReport(): Promise<Map<string, HostReport>> {
    return eventually(async () => {
      const found = await this.reports().catch(() => new Map<string, HostReport>())
      return found.size === this.members.length && found
    }, patienceMs)
  }

  async close(): Promise<void> {
    await this.engine.close()
    await this.bench.close()
  }
}

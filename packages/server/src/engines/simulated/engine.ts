import { setTimeout as delay } from 'node:timers/promises'
import { type CompiledRule, decidePacket, type Packet } from '../../domain/firewall.ts'
import { inParts } from '../../domain/lists.ts'
import { Batches } from '../../postgres/batches.ts'
import { type Database, type Queryable, TryAgain } from '../../postgres/database.ts'
import {
  type SimulatedFault,
  type SimulatedHost,
  type SimulatedPlace,
  type SimulatedVm,
  simulated,
  type WantedVm,
} from '../../store/simulated/objects.ts'
import {
  type AttachedDisk,
  type Call,
  type DiskRef,
  type DiskSpec,
  type DiskStatus,
  type Engine,
  EngineError,
  type HostReport,
  type PowerAction,
  type VmRef,
  type VmSpec,
  type VmStatus,
  type WantedState,
} from '../engine.ts'
import { briefReport, closeReport, disksOf, powerOf, status } from './reports.ts'
import { bootLines, crashLines, scriptMs, shutdownLines } from './serial.ts'

const serialTailBytes = 64 * 1024
const hostsPerPage = 500
/** So few that the VMs of one statement are some thousands. */
const hostsPerDetailedInspection = 50
const faultLookMs = 500
const shutdownMs = 200
/** So many VMs at most are put or removed by one statement. */
const mostTogether = 32

export interface SimulatedOptions {
  database: Database
  location: string
  bootMs: [min: number, max: number]
  quarantineMs: number
}

/**
 * VMs that exist only as rows: they boot, log, stop and crash by the service's clock, remember generations as a real
 * engine must, and misbehave on demand. All state is in the database, so it survives restarts and is shared.
 */
export class SimulatedEngine implements Engine {
  readonly #options: SimulatedOptions
  readonly #watchers = new Set<(vmId: string) => void>()
  readonly #puts: Batches<WantedVm, SimulatedVm | undefined>
  readonly #removals: Batches<SimulatedPlace, boolean>
  #faultsLookedAt = Number.NEGATIVE_INFINITY
  #mayHaveFaults = false

  constructor(options: SimulatedOptions) {
    this.#options = options
    const { database, quarantineMs } = options
    const together = { most: mostTogether }
    this.#puts = new Batches<WantedVm, SimulatedVm | undefined>({
      ...together,
      work: (vms) =>
        oncePerVm(vms, async (each) => {
          const put = new Map((await simulated.putVms(database, each)).map((vm) => [vm.id, vm]))
          return ({ id }) => put.get(id)
        }),
    })
    this.#removals = new Batches({
      ...together,
      work: (vms) =>
        oncePerVm(vms, async (each) => {
          const gone = new Set((await simulated.removeVms(database, each, quarantineMs)).map(({ id }) => id))
          return ({ id }) => gone.has(id)
        }),
    })
  }

  async *inventory(_signal: AbortSignal, isClose = (_host: string) => true): AsyncIterable<HostReport> {
    const { location } = this.#options
    for (let after = ''; ; ) {
      const { hosts, reports } = await this.#page(location, after, isClose)
      yield* reports
      if (hosts.length < hostsPerPage) return
      after = hosts.at(-1)!.name
    }
  }

  /** A page of hosts, read in one transaction: a look costs a commit, and not one for each statement. */
  #page(
    location: string,
    after: string,
    isClose: (host: string) => boolean,
  ): Promise<{ hosts: SimulatedHost[]; reports: HostReport[] }> {
    return this.#options.database.transaction(async (tx) => {
      const hosts = await simulated.listHosts(tx, location, after, hostsPerPage)
      const close = hosts.filter(({ name }) => isClose(name))
      const chosen = new Set(close)
      const reports = hosts.filter((host) => !chosen.has(host)).map(briefReport)
      for (const some of inParts(close, hostsPerDetailedInspection))
        reports.push(...(await this.#closeReports(tx, some)))
      // Shared storage has no place: its disks are told with the first of all hosts.
      const first = reports.find(({ name, isBrief }) => after === '' && !isBrief && name === hosts[0]?.name)
      if (first) first.disks = await simulated.listDisks(tx, location)
      return { hosts, reports }
    })
  }

  async #closeReports(db: Queryable, hosts: SimulatedHost[]): Promise<HostReport[]> {
    const { location, quarantineMs } = this.#options
    const names = hosts.map(({ name }) => name)
    const contents = await simulated.listContents(db, location, names)
    const contentsOf = new Map(contents.map((one) => [one.host, one]))
    return hosts.map((host) => closeReport(host, contentsOf.get(host.name)!, quarantineMs))
  }

  async ensureVm(spec: VmSpec, { firewall, power }: WantedState, call: Call): Promise<VmStatus | null> {
    const made = await this.#do('ensureVm', spec.id, async () => {
      const { location } = this.#options
      const { id, host, isNew } = spec
      const vm = await this.#puts.submit({
        ...{ id, location, host, isNew, spec, power, generation: call.generation },
        gpus: spec.gpus.map(({ pciAddress }) => pciAddress),
        firewall: firewall.rules,
        firewallGeneration: firewall.generation,
        readyInMs: this.#bootMs(),
        lines: bootLines(spec),
      })
      if (!vm) throw await this.#whyNotPut(spec, call)
      if (vm.ready_in_ms && vm.ready_in_ms > 0) this.#tellIn(id, vm.ready_in_ms)
      return status(vm)
    })
    if (made) return made
    const forgotten = await simulated.findVm(this.#db, spec.id)
    return forgotten && !forgotten.is_removed ? status(forgotten) : null
  }

  /** Of a VM that could be there, the host that is wanted is away: which is not where the VM was before. */
  async #whyNotPut({ id, host, isNew }: VmSpec, { generation }: Call): Promise<EngineError> {
    const vm = await simulated.findVm(this.#db, id)
    if (!vm) return isNew ? hostAway(host) : lost(id)
    return vm.is_removed || vm.generation > generation ? stale(id) : hostAway(host)
  }

  powerVm({ id }: VmRef, action: PowerAction, call: Call): Promise<void> {
    return this.#do('powerVm', id, async () => {
      const vm = await this.#living(id)
      const now = powerOf(vm)
      if (isThereAlready(action, now) || (action === 'reset' && vm.generation === call.generation)) {
        if (!(await simulated.seeVm(this.#db, id, call.generation))) throw stale(id)
        return
      }
      const spec = vm.spec as unknown as VmSpec
      const boot = this.#bootMs()
      const change = {
        reset: { to: 'on', ms: boot, lines: bootLines(spec) },
        shutdown: {
          to: 'shutdown',
          ms: Math.min(shutdownMs, boot) + scriptMs(spec.shutdownScript),
          lines: shutdownLines(spec),
        },
        off: { to: 'off', ms: 0, lines: '' },
      } as const
      const { to, ms, lines } = change[action]
      if (!(await simulated.setPower(this.#db, id, call.generation, to, ms, lines))) throw stale(id)
      this.#tellIn(id, ms)
    })
  }

  removeVm({ id, host }: VmRef, call: Call): Promise<void> {
    return this.#do('removeVm', id, async () => {
      const { location } = this.#options
      if (await this.#removals.submit({ id, location, host, generation: call.generation })) return
      throw (await simulated.findVm(this.#db, id))?.is_host_lost ? hostAway(host) : stale(id)
    })
  }

  async inspectVm({ id }: VmRef): Promise<VmStatus | null> {
    await this.#misbehave('inspectVm', id)
    const vm = await simulated.findVm(this.#db, id)
    if (!vm || vm.is_removed) return null
    if (vm.is_host_lost) throw hostAway(vm.host)
    return status(vm)
  }

  /** Nobody else places guests on its hosts. */
  async cordonHost(): Promise<void> {}

  ensureDisk(disk: DiskSpec, call: Call): Promise<void> {
    return this.#do('ensureDisk', disk.id, () => this.#putDisk(disk, call))
  }

  growDisk(disk: DiskSpec, call: Call): Promise<void> {
    return this.#do('growDisk', disk.id, async () => {
      const known = await simulated.findDisk(this.#db, disk.id)
      if (!known || known.is_removed) throw new EngineError('missing', `there is no disk ${disk.id}`)
      await this.#putDisk(disk, call)
    })
  }

  removeDisk({ id }: DiskRef, call: Call): Promise<void> {
    return this.#do('removeDisk', id, async () => {
      const { location } = this.#options
      if (!(await simulated.removeDisk(this.#db, { id, location, generation: call.generation })))
        throw stale(id)
    })
  }

  async inspectDisk({ id }: DiskRef): Promise<DiskStatus | null> {
    await this.#misbehave('inspectDisk', id)
    const disk = await simulated.findDisk(this.#db, id)
    return disk && !disk.is_removed ? { id, generation: disk.generation, sizeGib: disk.size_gib } : null
  }

  attachDisk({ id }: VmRef, disk: AttachedDisk, call: Call): Promise<void> {
    return this.#do('attachDisk', id, async () => {
      const known = await simulated.findDisk(this.#db, disk.id)
      if (!known || known.is_removed) throw new EngineError('missing', `there is no disk ${disk.id}`)
      const others = disksOf(await this.#living(id)).filter((other) => other.id !== disk.id)
      if (!(await simulated.setDisks(this.#db, id, call.generation, [...others, disk]))) throw stale(id)
    })
  }

  detachDisk({ id }: VmRef, disk: DiskRef, call: Call): Promise<void> {
    return this.#do('detachDisk', id, async () => {
      const others = disksOf(await this.#living(id)).filter((other) => other.id !== disk.id)
      if (!(await simulated.setDisks(this.#db, id, call.generation, others))) throw stale(id)
    })
  }

  applyFirewall({ id }: VmRef, rules: CompiledRule[], call: Call): Promise<void> {
    return this.#do('applyFirewall', id, async () => {
      if (await simulated.setFirewall(this.#db, id, call.generation, rules)) return
      await this.#living(id)
      throw stale(id)
    })
  }

  async serialLog(
    { id }: VmRef,
    offset: number | undefined,
  ): Promise<{ content: string; nextOffset: number }> {
    await this.#misbehave('serialLog', id)
    const text = await simulated.serial(this.#db, id)
    if (text === undefined) throw new EngineError('missing', `there is no VM ${id}`)
    const bytes = Buffer.from(text, 'utf8')
    const from = Math.min(offset ?? Math.max(0, bytes.length - serialTailBytes), bytes.length)
    return {
      content: bytes.subarray(from, from + serialTailBytes).toString('utf8'),
      nextOffset: Math.min(bytes.length, from + serialTailBytes),
    }
  }

  watch(onChange: (vmId: string) => void): () => void {
    this.#watchers.add(onChange)
    return () => this.#watchers.delete(onChange)
  }

  // ── On demand: what a real engine does by accident ────────────────────────────────────────────────────────────

  /** Would this packet pass the firewall that is in force? */
  async wouldPass(vmId: string, packet: Packet): Promise<boolean> {
    const vm = await simulated.findVm(this.#db, vmId)
    return vm !== undefined && !vm.is_removed && decidePacket(vm.firewall as CompiledRule[], packet).allowed
  }

  async crashVm(vmId: string): Promise<void> {
    await simulated.crash(this.#db, vmId, crashLines)
    this.#tell(vmId)
  }

  async setHostLost(host: string, isLost: boolean): Promise<void> {
    await simulated.setHostLost(this.#db, this.#options.location, host, isLost)
  }

  /** What a host has after it was reinstalled: none of its VMs, and no memory of them. */
  async reinstallHost(host: string): Promise<void> {
    await simulated.clearHost(this.#db, this.#options.location, host)
  }

  async addFault(fault: Partial<SimulatedFault> & Pick<SimulatedFault, 'method' | 'kind'>): Promise<void> {
    await simulated.addFault(this.#db, { resourceId: null, delayMs: 0, times: 1, ...fault })
    this.#mayHaveFaults = true
    this.#faultsLookedAt = performance.now()
  }

  async clearFaults(): Promise<void> {
    await simulated.clearFaults(this.#db)
  }

  get #db(): Database {
    return this.#options.database
  }

  #tell(vmId: string): void {
    for (const watcher of this.#watchers) watcher(vmId)
  }

  #tellIn(vmId: string, ms: number): void {
    setTimeout(() => this.#tell(vmId), ms + 1).unref()
  }

  #bootMs(): number {
    const [min, max] = this.#options.bootMs
    return min + Math.random() * (max - min)
  }

  async #putDisk(disk: DiskSpec, call: Call): Promise<void> {
    const { location } = this.#options
    const { id, sizeGib } = disk
    if (!(await simulated.putDisk(this.#db, { id, location, generation: call.generation, sizeGib })))
      throw stale(id)
  }

  async #living(id: string): Promise<SimulatedVm> {
    const vm = await simulated.findVm(this.#db, id)
    if (!vm || vm.is_removed) throw new EngineError('missing', `there is no VM ${id}`)
    if (vm.is_host_lost) throw hostAway(vm.host)
    return vm
  }

  /** A mutating call, with whatever fault is due around it. Undefined when it was forgotten. */
  async #do<T>(method: string, id: string, act: () => Promise<T>): Promise<T | undefined> {
    const fault = await this.#misbehave(method, id)
    if (fault === 'forget') return undefined
    const done = await act()
    if (fault === 'lie')
      throw new EngineError('unavailable', `simulated: ${method} was done but answers an error`)
    return done
  }

  async #misbehave(method: string, id: string): Promise<SimulatedFault['kind'] | undefined> {
    // Faults are rare and calls are many: look for any only now and then.
    if (performance.now() - this.#faultsLookedAt > faultLookMs) {
      this.#mayHaveFaults = await simulated.hasFaults(this.#db)
      this.#faultsLookedAt = performance.now()
    }
    const fault = this.#mayHaveFaults ? await simulated.takeFault(this.#db, method, id) : undefined
    if (!fault) return undefined
    // Deaf to its caller's signal on purpose: what a hung engine does at last, it does late.
    if (fault.delay_ms > 0) await delay(fault.delay_ms, undefined, { ref: false })
    if (fault.kind === 'fail') throw new EngineError('unavailable', `simulated: ${method} failed`)
    if (fault.kind === 'reject') throw new EngineError('rejected', `simulated: ${method} is refused`)
    return fault.kind
  }
}

const isThereAlready = (action: PowerAction, now: VmStatus['power']) =>
  ((action === 'off' || action === 'shutdown') && now === 'off') ||
  (action === 'shutdown' && now === 'stopping')

const stale = (id: string) => new EngineError('stale', `a newer generation of ${id} was seen`)
const lost = (id: string) => new EngineError('lost', `the OS disk of ${id} is gone`)
const hostAway = (host: string) => new EngineError('unavailable', `the host ${host} does not answer`)

/** Has `work` done for the first call of each VM; a second one leaves the batch. */
async function oncePerVm<Place extends SimulatedPlace, Result>(
  vms: Place[],
  work: (vms: Place[]) => Promise<(vm: Place) => Result>,
): Promise<(Result | TryAgain)[]> {
  const first = new Map(vms.toReversed().map((vm) => [vm.id, vm]))
  const resultOf = await work([...first.values()])
  return vms.map((vm) =>
    first.get(vm.id) === vm ? resultOf(vm) : new TryAgain('the VM is in the batch twice'),
  )
}

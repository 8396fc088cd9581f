import { setTimeout as delay } from 'node:timers/promises'
import { type CompiledRule, decidePacket, type Packet } from '../../domain/firewall.ts'
import { zeroUuid } from '../../domain/ids.ts'
import { chunksOf } from '../../domain/lists.ts'
import { Batches } from '../../postgres/batches.ts'
import { type Database, type Queryable, TryAgain } from '../../postgres/database.ts'
import {
  type SimulatedFault,
  type SimulatedHost,
  type SimulatedMetrics,
  type SimulatedPlacement,
  type SimulatedVm,
  simulated,
  type WantedVm,
} from '../../store/simulated/objects.ts'
import { addXid, repairGpus } from '../../store/simulated/xids.ts'
import {
  type AttachedDisk,
  type Call,
  type CaptureRef,
  type CaptureSpec,
  type CaptureStatus,
  type DiskRef,
  type DiskSpec,
  type DiskStatus,
  type Engine,
  type EngineConsole,
  EngineError,
  type HostReport,
  noSuchDisk,
  noSuchVm,
  osDiskLost,
  type PowerAction,
  type VmRef,
  type VmSample,
  type VmSpec,
  type VmStatus,
  type WantedState,
} from '../engine.ts'
import { SimulatedCopies } from './copies.ts'
import { briefReport, detailedReport, disksOf, powerOf, status } from './reports.ts'
import { simulatedSample } from './samples.ts'
import { bootLines, crashLines, echoShell, scriptMs, shutdownLines } from './serial.ts'

const vmsPerSampling = 1_000
const serialTailBytes = 64 * 1024
const hostsPerPage = 500
/** Keeps the number of VMs in one statement below a few thousand. */
const hostsPerDetailedInspection = 50
const faultCheckMs = 500
const shutdownMs = 200
const maxVmsPerStatement = 32

export interface SimulatedOptions {
  database: Database
  location: string
  bootMs: [min: number, max: number]
  quarantineMs: number
}

/**
 * An engine whose VMs exist only as rows. They boot, log, stop and crash by the service's clock, remember
 * generations as a real engine must, and fail on demand. All state is in the database, so it survives
 * restarts and all processes share it.
 */
export class SimulatedEngine implements Engine {
  readonly #options: SimulatedOptions
  readonly #db: Database
  readonly #copies: SimulatedCopies
  readonly #watchers = new Set<(vmId: string) => void>()
  readonly #puts: Batches<WantedVm, SimulatedVm | undefined>
  readonly #removals: Batches<SimulatedPlacement, { id: string } | undefined>
  #bootRange: [min: number, max: number]
  #faultsCheckedAt = Number.NEGATIVE_INFINITY
  #mayHaveFaults = false

  constructor(options: SimulatedOptions) {
    this.#options = options
    this.#db = options.database
    this.#copies = new SimulatedCopies(options.database, options.location)
    this.#bootRange = options.bootMs
    const { database, quarantineMs } = options
    this.#puts = oncePerVm((vms: WantedVm[]) => simulated.putVms(database, vms))
    this.#removals = oncePerVm((vms) => simulated.removeVms(database, vms, quarantineMs))
  }

  async *inventory(_signal: AbortSignal, isDetailed = (_host: string) => true): AsyncIterable<HostReport> {
    for (let after = ''; ; ) {
      const { hosts, reports } = await this.#page(after, isDetailed)
      yield* reports
      if (hosts.length < hostsPerPage) return
      after = hosts.at(-1)!.name
    }
  }

  /**
   * Reads a page of hosts in one transaction, so that a page costs one commit instead of one per statement.
   */
  #page(
    after: string,
    isDetailed: (host: string) => boolean,
  ): Promise<{ hosts: SimulatedHost[]; reports: HostReport[] }> {
    const { database, location } = this.#options
    return database.transaction(async (tx) => {
      const hosts = await simulated.listHosts(tx, location, after, hostsPerPage)
      const reports = hosts.filter(({ name }) => !isDetailed(name)).map(briefReport)
      const detailed = hosts.filter(({ name }) => isDetailed(name))
      for (const chunk of chunksOf(detailed, hostsPerDetailedInspection))
        reports.push(...(await this.#detailedReports(tx, chunk)))
      // Disks and copies on shared storage belong to no host, so they are reported with the first host.
      const first = reports.find(
        ({ name, isSummary }) => after === '' && !isSummary && name === hosts[0]?.name,
      )
      if (first) {
        first.disks = await simulated.listDisks(tx, location)
        first.captures = await simulated.listCaptures(tx, location)
      }
      return { hosts, reports }
    })
  }

  async #detailedReports(db: Queryable, hosts: SimulatedHost[]): Promise<HostReport[]> {
    const { location, quarantineMs } = this.#options
    const names = hosts.map(({ name }) => name)
    const contents = await simulated.listContents(db, location, names)
    const contentsOf = new Map(contents.map((one) => [one.host, one]))
    return hosts.map((host) => detailedReport(host, contentsOf.get(host.name)!, quarantineMs))
  }

  async ensureVm(spec: VmSpec, { firewall, power }: WantedState, call: Call): Promise<VmStatus | null> {
    const written = await this.#do('ensureVm', spec.id, async () => {
      const { location } = this.#options
      const { id, host, isNew } = spec
      if (isNew && typeof spec.image.source.capture === 'string')
        await this.#copies.require(spec.image.source.capture)
      const vm = await this.#puts.submit({
        ...{ id, location, host, isNew, spec, power, generation: call.generation },
        gpus: spec.gpus.map(({ pciAddress }) => pciAddress),
        firewall: firewall.rules,
        firewallGeneration: firewall.generation,
        readyInMs: this.#bootMs(),
        lines: bootLines(spec),
      })
      if (!vm) throw await this.#whyNotPut(spec, call)
      if (vm.ready_in_ms && vm.ready_in_ms > 0) this.#notifyIn(id, vm.ready_in_ms)
      return status(vm)
    })
    if (written) return written
    const before = await this.#find(spec.id)
    return before ? status(before) : null
  }

  /**
   * Returns why the VM was not written. If the generation is not stale, the reason is that the host of the
   * spec is lost; the VM itself may be on another host.
   */
  async #whyNotPut({ id, host, isNew }: VmSpec, { generation }: Call): Promise<EngineError> {
    const vm = await simulated.findVm(this.#db, id)
    if (!vm) return isNew ? hostUnavailable(host) : osDiskLost(id)
    return vm.is_removed || vm.generation > generation ? stale(id) : hostUnavailable(host)
  }

  powerVm({ id }: VmRef, action: PowerAction, call: Call): Promise<void> {
    return this.#do('powerVm', id, async () => {
      const vm = await this.#require(id)
      const isRepeatedReset = action === 'reset' && vm.generation === call.generation
      if (isRepeatedReset || hasReached(action, powerOf(vm)))
        return requireCurrent(id, simulated.seeVm(this.#db, id, call.generation))
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
      await requireCurrent(id, simulated.setPower(this.#db, id, call.generation, to, ms, lines))
      this.#notifyIn(id, ms)
    })
  }

  removeVm({ id, host }: VmRef, call: Call): Promise<void> {
    return this.#do('removeVm', id, async () => {
      const { location } = this.#options
      if (await this.#removals.submit({ id, location, host, generation: call.generation })) return
      throw (await simulated.findVm(this.#db, id))?.is_host_lost ? hostUnavailable(host) : stale(id)
    })
  }

  async inspectVm({ id }: VmRef): Promise<VmStatus | null> {
    await this.#applyFault('inspectVm', id)
    const vm = await this.#find(id)
    if (vm?.is_host_lost) throw hostUnavailable(vm.host)
    return vm ? status(vm) : null
  }

  /** Nothing to do: only Slipway places guests on these hosts. */
  async cordonHost(): Promise<void> {}

  ensureDisk(disk: DiskSpec, call: Call): Promise<void> {
    return this.#do('ensureDisk', disk.id, async () => {
      if (disk.source) await this.#copies.require(disk.source.id)
      await this.#putDisk(disk, call)
    })
  }

  growDisk(disk: DiskSpec, call: Call): Promise<void> {
    return this.#do('growDisk', disk.id, async () => {
      await this.#requireDisk(disk.id)
      await this.#putDisk(disk, call)
    })
  }

  removeDisk({ id }: DiskRef, call: Call): Promise<void> {
    const { location } = this.#options
    return this.#do('removeDisk', id, () =>
      requireCurrent(id, simulated.removeDisk(this.#db, { id, location, generation: call.generation })),
    )
  }

  async inspectDisk({ id }: DiskRef): Promise<DiskStatus | null> {
    await this.#applyFault('inspectDisk', id)
    const disk = await simulated.findDisk(this.#db, id)
    return disk && !disk.is_removed ? { id, generation: disk.generation, sizeGib: disk.size_gib } : null
  }

  attachDisk({ id }: VmRef, disk: AttachedDisk, call: Call): Promise<void> {
    return this.#do('attachDisk', id, async () => {
      await this.#requireDisk(disk.id)
      const others = disksOf(await this.#require(id)).filter((other) => other.id !== disk.id)
      await requireCurrent(id, simulated.setDisks(this.#db, id, call.generation, [...others, disk]))
    })
  }

  detachDisk({ id }: VmRef, disk: DiskRef, call: Call): Promise<void> {
    return this.#do('detachDisk', id, async () => {
      const others = disksOf(await this.#require(id)).filter((other) => other.id !== disk.id)
      await requireCurrent(id, simulated.setDisks(this.#db, id, call.generation, others))
    })
  }

  capture(capture: CaptureSpec, call: Call): Promise<void> {
    return this.#do('capture', capture.id, () =>
      requireCurrent(
        capture.id,
        this.#copies.put(capture, call, async (vm) => powerOf(await this.#require(vm.id)) !== 'off'),
      ),
    )
  }

  removeCapture(capture: CaptureRef, call: Call): Promise<void> {
    return this.#do('removeCapture', capture.id, () =>
      requireCurrent(capture.id, this.#copies.remove(capture, call)),
    )
  }

  async inspectCapture(capture: CaptureRef): Promise<CaptureStatus | null> {
    await this.#applyFault('inspectCapture', capture.id)
    return this.#copies.find(capture)
  }

  setPublicAddress({ id }: VmRef, address: string, call: Call): Promise<void> {
    return this.#do('setPublicAddress', id, async () => {
      await this.#require(id)
      await requireCurrent(id, simulated.setPublicAddress(this.#db, id, call.generation, address))
    })
  }

  applyFirewall({ id }: VmRef, rules: CompiledRule[], call: Call): Promise<void> {
    return this.#do('applyFirewall', id, async () => {
      if (await simulated.setFirewall(this.#db, id, call.generation, rules)) return
      await this.#require(id)
      throw stale(id)
    })
  }

  async serialLog({ id }: VmRef, offset: number | undefined) {
    await this.#applyFault('serialLog', id)
    const text = await simulated.serial(this.#db, id)
    if (text === undefined) throw noSuchVm(id)
    const bytes = Buffer.from(text, 'utf8')
    const from = Math.min(offset ?? Math.max(0, bytes.length - serialTailBytes), bytes.length)
    const content = bytes.subarray(from, from + serialTailBytes)
    return { content: content.toString('utf8'), nextOffset: from + content.length }
  }

  async openConsole({ id }: VmRef): Promise<EngineConsole> {
    const vm = await this.#require(id)
    if (powerOf(vm) === 'off') throw new EngineError('rejected', 'The VM is off: it has no console.')
    return echoShell((vm.spec as unknown as VmSpec).name, (text) =>
      simulated.appendSerial(this.#db, id, text).then(() => {}),
    )
  }

  watch(onChange: (vmId: string) => void): () => void {
    this.#watchers.add(onChange)
    return () => this.#watchers.delete(onChange)
  }

  /** Returns whether the VM's current firewall lets this packet pass. */
  async wouldPass(vmId: string, packet: Packet): Promise<boolean> {
    const vm = await this.#find(vmId)
    return vm !== undefined && decidePacket(vm.firewall as CompiledRule[], packet).allowed
  }

  /** Sets whether guests have an agent that can freeze their file systems. */
  setGuestAgent = (isPresent: boolean) => simulated.setGuestAgent(this.#db, isPresent)

  /** Changes how long boots take from now on. */
  setBootMs(range: [min: number, max: number]): void {
    this.#bootRange = range
  }

  async crashVm(vmId: string): Promise<void> {
    await simulated.crash(this.#db, vmId, crashLines)
    this.#notify(vmId)
  }

  async *sample(): AsyncIterable<VmSample> {
    const { database, location } = this.#options
    for (let afterId = zeroUuid; ; ) {
      const vms = await simulated.listRunning(database, location, afterId, vmsPerSampling)
      for (const vm of vms) yield simulatedSample(vm)
      if (vms.length < vmsPerSampling) return
      afterId = vms.at(-1)!.id
    }
  }

  /** Sets what the guest reports from now on. */
  async setMetrics(vmId: string, metrics: SimulatedMetrics): Promise<void> {
    await simulated.setMetrics(this.#db, vmId, JSON.stringify(metrics))
  }

  /** Makes the guest or the host report an XID error. Returns false if the VM has no such GPU. */
  async reportXid(
    id: string,
    error: { xid: number; gpuIndex: number; source: 'host' | 'guest'; at: Date | null },
  ): Promise<boolean> {
    return (await addXid(this.#db, { id, ...error })) !== undefined
  }

  /** Clears the faults of all GPUs of a host. */
  async repairGpus(host: string): Promise<void> {
    await repairGpus(this.#db, this.#options.location, host)
  }

  async setHostLost(host: string, isLost: boolean): Promise<void> {
    await simulated.setHostLost(this.#db, this.#options.location, host, isLost)
  }

  /** Removes all VMs of a host and their generations, as a reinstallation does. */
  async reinstallHost(host: string): Promise<void> {
    await simulated.clearHost(this.#db, this.#options.location, host)
  }

  async addFault(fault: Partial<SimulatedFault> & Pick<SimulatedFault, 'method' | 'kind'>): Promise<void> {
    await simulated.addFault(this.#db, { resourceId: null, delayMs: 0, times: 1, ...fault })
    this.#mayHaveFaults = true
    this.#faultsCheckedAt = performance.now()
  }

  async clearFaults(): Promise<void> {
    await simulated.clearFaults(this.#db)
  }

  #notify(vmId: string): void {
    for (const watcher of this.#watchers) watcher(vmId)
  }

  #notifyIn(vmId: string, ms: number): void {
    setTimeout(() => this.#notify(vmId), ms + 1).unref()
  }

  #bootMs(): number {
    const [min, max] = this.#bootRange
    return min + Math.random() * (max - min)
  }

  #putDisk({ id, sizeGib }: DiskSpec, { generation }: Call): Promise<void> {
    const { location } = this.#options
    return requireCurrent(id, simulated.putDisk(this.#db, { id, location, generation, sizeGib }))
  }

  async #requireDisk(id: string): Promise<void> {
    const disk = await simulated.findDisk(this.#db, id)
    if (!disk || disk.is_removed) throw noSuchDisk(id)
  }

  async #find(id: string): Promise<SimulatedVm | undefined> {
    const vm = await simulated.findVm(this.#db, id)
    return vm?.is_removed ? undefined : vm
  }

  async #require(id: string): Promise<SimulatedVm> {
    const vm = await this.#find(id)
    if (!vm) throw noSuchVm(id)
    if (vm.is_host_lost) throw hostUnavailable(vm.host)
    return vm
  }

  /**
   * Runs a mutating call, with a fault if one was added for it. Returns undefined if the fault drops the
   * call.
   */
  async #do<T>(method: string, id: string, act: () => Promise<T>): Promise<T | undefined> {
    const fault = await this.#applyFault(method, id)
    if (fault === 'forget') return undefined
    const result = await act()
    if (fault === 'lie')
      throw new EngineError('unavailable', `simulated: ${method} succeeded but reports an error`)
    return result
  }

  async #applyFault(method: string, id: string): Promise<SimulatedFault['kind'] | undefined> {
    // Faults are rare and calls are frequent, so the table is checked only occasionally.
    const now = performance.now()
    if (now - this.#faultsCheckedAt > faultCheckMs) {
      const hasFaults = await simulated.hasFaults(this.#db)
      // A fault that was added during the read may not be in its result.
      if (this.#faultsCheckedAt < now) {
        this.#mayHaveFaults = hasFaults
        this.#faultsCheckedAt = now
      }
    }
    const fault = this.#mayHaveFaults ? await simulated.takeFault(this.#db, method, id) : undefined
    if (!fault) return undefined
    // Ignores the caller's signal on purpose: an engine that hangs still completes the call later.
    if (fault.delay_ms > 0) await delay(fault.delay_ms, undefined, { ref: false })
    if (fault.kind === 'fail') throw new EngineError('unavailable', `simulated: ${method} failed`)
    if (fault.kind === 'reject') throw new EngineError('rejected', `simulated: ${method} is rejected`)
    return fault.kind
  }
}

const hasReached = (action: PowerAction, now: VmStatus['power']) =>
  ((action === 'off' || action === 'shutdown') && now === 'off') ||
  (action === 'shutdown' && now === 'stopping')

const stale = (id: string) => new EngineError('stale', `${id} has a newer generation`)
const hostUnavailable = (host: string) => new EngineError('unavailable', `the host ${host} does not respond`)

async function requireCurrent(id: string, written: Promise<unknown>): Promise<void> {
  if (!(await written)) throw stale(id)
}

/**
 * Writes the calls of a batch in one statement, and returns a row for each call. A second call for the same
 * VM is retried on its own.
 */
const oncePerVm = <Vm extends SimulatedPlacement, Row extends { id: string }>(
  write: (vms: Vm[]) => Promise<Row[]>,
) =>
  new Batches<Vm, Row | undefined>({
    maxItems: maxVmsPerStatement,
    async handle(vms) {
      const first = new Map(vms.toReversed().map((vm) => [vm.id, vm]))
      const rows = new Map((await write([...first.values()])).map((row) => [row.id, row]))
      return vms.map((vm) =>
        first.get(vm.id) === vm ? rows.get(vm.id) : new TryAgain('the VM is in the batch twice'),
      )
    },
  })

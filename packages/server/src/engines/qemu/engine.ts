import { link, mkdir, rm } from 'node:fs/promises'
import type { CompiledRule } from '../../domain/firewall.ts'
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
import { continueCapture, continueRestore, removeCopy, requireCapture } from './captures/captures.ts'
import { discardAttempt } from './captures/copy.ts'
import type { QemuContext } from './context.ts'
import { plug, resizeInQemu, unplug } from './disks/attachments.ts'
import { createOverlay, growImage } from './disks/disk-files.ts'
import { writeAtomically } from './files.ts'
import { hostReport } from './host-report.ts'
import { type ImageSource, osBaseOf } from './images/images.ts'
import { seedImage } from './images/seed.ts'
import { Monitor } from './monitor.ts'
import { syncForwards } from './network.ts'
import { type Observation, observe, toStatus } from './observe.ts'
import { powerOff, powerOn, requestShutdown, reset } from './power.ts'
import { openConsole } from './process/console.ts'
import { readSerial } from './process/serial-log.ts'
import { sampleVms } from './samples.ts'

/**
 * Runs VMs on this machine, each as a QEMU process. All state is in files, so that every server process sees
 * the same state.
 */
export class QemuEngine implements Engine {
  readonly #ctx: QemuContext
  readonly #monitor: Monitor
  readonly #watchers = new Set<(vmId: string) => void>()
  readonly #observe = (vmId: string) => observe(this.#ctx, vmId)
  readonly #readCapture = (captureId: string) => this.#ctx.captures.read(captureId)
  readonly #readDisk = (diskId: string) => this.#ctx.disks.read(diskId)

  constructor(ctx: QemuContext) {
    this.#ctx = ctx
    this.#monitor = new Monitor(ctx, (vmId) => {
      for (const onChange of this.#watchers) onChange(vmId)
    })
    this.#monitor.start()
  }

  async *inventory(signal: AbortSignal): AsyncIterable<HostReport> {
    signal.throwIfAborted()
    yield await hostReport(this.#ctx)
  }

  async ensureVm(spec: VmSpec, { firewall, power }: WantedState, call: Call): Promise<VmStatus | null> {
    await this.#withLock(spec, call, 'make', this.#observe, async (found) => {
      if (!found && !spec.isNew) throw osDiskLost(spec.id)
      if (!found || found.power === 'off') await this.#define(spec, found, call)
      const defined = requireVm(spec, await observe(this.#ctx, spec.id))
      const isNewest = firewall.generation >= defined.record.firewallGeneration
      const seen = isNewest ? await this.#applyRules(spec.id, defined, firewall) : defined
      if (power === 'on' && seen.power !== 'crashed') await powerOn(this.#ctx, spec.id, seen, call.signal)
    })
    return this.inspectVm(spec, call.signal)
  }

  async powerVm(vm: VmRef, action: PowerAction, call: Call): Promise<void> {
    await this.#withLock(vm, call, 'change', this.#observe, async (found) => {
      const seen = requireVm(vm, found)
      switch (action) {
        case 'shutdown':
          return requestShutdown(this.#ctx, vm.id, seen)
        case 'off':
          return powerOff(this.#ctx, vm.id, seen)
        case 'reset':
          return reset(this.#ctx, vm.id, seen, call.generation, call.signal)
      }
    })
    if (action === 'reset') this.#monitor.watchBoot(vm.id)
  }

  async removeVm(vm: VmRef, call: Call): Promise<void> {
    await this.#withLock(vm, call, 'remove', this.#observe, async (seen) => {
      if (seen) await powerOff(this.#ctx, vm.id, seen)
      else await this.#ctx.forwarder.remove(vm.id)
      await rm(this.#ctx.records.folder(vm.id), { recursive: true, force: true, maxRetries: 5 })
      await this.#ctx.fences.markRemoved(vm.id, call.generation)
    })
  }

  async inspectVm(vm: VmRef, signal: AbortSignal): Promise<VmStatus | null> {
    this.#requireHost(vm.host)
    signal.throwIfAborted()
    const seen = await observe(this.#ctx, vm.id)
    if (!seen) return null
    if (seen.power === 'booting') this.#monitor.watchBoot(vm.id)
    const status = toStatus(vm.id, await this.#ctx.fences.generation(vm.id), seen)
    const isChanging = seen.power === 'booting' || seen.power === 'stopping'
    return isChanging ? { ...status, etaMs: this.#monitor.pollIntervalMs() } : status
  }

  /** Nothing to do: only Slipway places guests on this host. */
  async cordonHost(): Promise<void> {}

  async ensureDisk(disk: DiskSpec, call: Call): Promise<void> {
    await this.#withLock(this.#here(disk), call, 'make', this.#readDisk, async (known) => {
      const { source } = disk
      if (source) await continueRestore(this.#ctx, { ...disk, source }, known, call.signal)
      else if (!known) await this.#ctx.disks.create(disk, call.signal)
    })
  }

  async growDisk(disk: DiskSpec, call: Call): Promise<void> {
    await this.#withLock(this.#here(disk), call, 'change', this.#readDisk, async (known) => {
      if (!known) throw noSuchDisk(disk.id)
      if (disk.sizeGib <= known.sizeGib) return
      if (known.type === 'persistent-ssd') await this.#growImage(disk, call.signal)
      await this.#ctx.disks.recordSize(known, disk.sizeGib)
    })
  }

  async removeDisk(disk: DiskRef, call: Call): Promise<void> {
    await this.#withLock(this.#here(disk), call, 'remove', this.#readDisk, async () => {
      const user = (await this.#usersOf(disk.id))[0]
      if (user) throw new EngineError('rejected', `disk ${disk.id} is attached to VM ${user.id}`)
      await discardAttempt(this.#ctx.disks.folder(disk.id))
      await this.#ctx.disks.remove(disk.id)
      await this.#ctx.fences.markRemoved(disk.id, call.generation)
    })
  }

  async inspectDisk({ id }: DiskRef, signal: AbortSignal): Promise<DiskStatus | null> {
    signal.throwIfAborted()
    const disk = await this.#ctx.disks.read(id)
    if (!disk) return null
    const { sizeGib, isCopying } = disk
    return { id, generation: await this.#ctx.fences.generation(id), sizeGib, ...(isCopying && { isCopying }) }
  }

  async attachDisk(vm: VmRef, disk: AttachedDisk, call: Call): Promise<void> {
    await this.#withLock(vm, call, 'change', this.#observe, async (found) => {
      const { record, process } = requireVm(vm, found)
      await this.#ctx.disks.require(disk.id)
      if (process) await plug(this.#ctx, vm.id, disk)
      const others = record.spec.disks.filter((attached) => attached.id !== disk.id)
      await this.#ctx.records.write(vm.id, { ...record, spec: { ...record.spec, disks: [...others, disk] } })
    })
  }

  async detachDisk(vm: VmRef, disk: DiskRef, call: Call): Promise<void> {
    await this.#withLock(vm, call, 'change', this.#observe, async (found) => {
      const { record, process } = requireVm(vm, found)
      const attached = record.spec.disks.find((candidate) => candidate.id === disk.id)
      if (!attached) return
      if (process) await unplug(this.#ctx, vm.id, attached)
      const disks = record.spec.disks.filter((candidate) => candidate.id !== disk.id)
      await this.#ctx.records.write(vm.id, { ...record, spec: { ...record.spec, disks } })
    })
  }

  async capture(capture: CaptureSpec, call: Call): Promise<void> {
    await this.#withLock(this.#here(capture), call, 'make', this.#readCapture, (known) =>
      continueCapture(this.#ctx, capture, known, call.signal),
    )
  }

  async removeCapture(capture: CaptureRef, call: Call): Promise<void> {
    await this.#withLock(this.#here(capture), call, 'remove', this.#readCapture, async (known) => {
      await removeCopy(this.#ctx, capture.id, known)
      await this.#ctx.fences.markRemoved(capture.id, call.generation)
    })
  }

  async inspectCapture({ id }: CaptureRef, signal: AbortSignal): Promise<CaptureStatus | null> {
    signal.throwIfAborted()
    const record = await this.#ctx.captures.read(id)
    if (!record) return null
    return { id, generation: await this.#ctx.fences.generation(id), result: record.result }
  }

  async setPublicAddress(vm: VmRef, publicAddress: string, call: Call): Promise<void> {
    await this.#withLock(vm, call, 'change', this.#observe, async (found) => {
      const { record: before, run, process } = requireVm(vm, found)
      const network = { ...before.spec.network, publicAddress }
      const record = { ...before, spec: { ...before.spec, network } }
      await this.#ctx.records.write(vm.id, record)
      if (run && process) await syncForwards(this.#ctx, vm.id, record, { ...run, process })
    })
  }

  async applyFirewall(vm: VmRef, rules: CompiledRule[], call: Call): Promise<void> {
    this.#requireHost(vm.host)
    await this.#ctx.locks.with(vm.id, call.signal, async () => {
      const seen = requireVm(vm, await observe(this.#ctx, vm.id))
      await this.#applyRules(vm.id, seen, { rules, generation: call.generation })
    })
  }

  async serialLog(vm: VmRef, offset: number | undefined, signal: AbortSignal) {
    this.#requireHost(vm.host)
    signal.throwIfAborted()
    if (!(await this.#ctx.records.read(vm.id))) throw noSuchVm(vm.id)
    return readSerial(this.#ctx.records.folder(vm.id), offset)
  }

  sample(signal: AbortSignal): AsyncIterable<VmSample> {
    return sampleVms(this.#ctx, signal)
  }

  async openConsole(vm: VmRef): Promise<EngineConsole> {
    this.#requireHost(vm.host)
    const { process } = requireVm(vm, await observe(this.#ctx, vm.id))
    if (!process) throw new EngineError('rejected', 'The VM is off: it has no console.')
    return openConsole(this.#ctx.records.folder(vm.id))
  }

  watch(onChange: (vmId: string) => void): () => void {
    this.#watchers.add(onChange)
    return () => this.#watchers.delete(onChange)
  }

  /** Releases the engine's timers and connections. The VMs and their forwarder keep running. */
  async close(): Promise<void> {
    await this.#monitor.close()
    await this.#ctx.forwarder.close()
  }

  /** Writes the definition for the next start, and creates the OS disk of a new VM. */
  async #define(spec: VmSpec, found: Observation | null, call: Call): Promise<void> {
    for (const disk of spec.disks) await this.#ctx.disks.require(disk.id)
    const { egress } = this.#ctx.options
    if (!found) await this.#prepareFolder(spec, call)
    const base = await this.#baseOf(spec, call)
    if (!found) await createOverlay(this.#ctx.records.osDisk(spec.id), base, call.signal)
    await writeAtomically(this.#ctx.records.seed(spec.id), seedImage(spec, egress))
    const { rules, firewallGeneration } = found?.record ?? { rules: [], firewallGeneration: 0 }
    await this.#ctx.records.write(spec.id, { spec, rules, firewallGeneration })
  }

  /**
   * Creates the folder of a new VM. The file of a custom image is hard-linked there, because the image may be
   * removed later.
   */
  async #prepareFolder(spec: VmSpec, call: Call): Promise<void> {
    const { captures, records } = this.#ctx
    const source = spec.image.source as ImageSource
    const folder = records.folder(spec.id)
    await rm(folder, { recursive: true, force: true })
    // Check the image first, so that an unusable image leaves no folder.
    if (source.kind === 'capture') await requireCapture(this.#ctx, source.id)
    else await this.#baseOf(spec, call)
    await mkdir(folder, { mode: 0o700 })
    if (source.kind === 'capture') await link(captures.imageFile(source.id), records.osBase(spec.id))
  }

  #baseOf(spec: VmSpec, { signal }: Call) {
    return this.#ctx.locks.with('images', signal, () => osBaseOf(this.#ctx, spec))
  }

  /** Applies the firewall rules and returns the updated VM. */
  async #applyRules(id: string, seen: Observation, firewall: WantedState['firewall']): Promise<Observation> {
    await this.#ctx.fences.advanceFirewall(id, firewall.generation)
    const record = { ...seen.record, rules: firewall.rules, firewallGeneration: firewall.generation }
    await this.#ctx.records.write(id, record)
    if (seen.run && seen.process)
      await syncForwards(this.#ctx, id, record, { ...seen.run, process: seen.process })
    return { ...seen, record }
  }

  /** Holds the lock of a VM, disk or copy while `work` runs. Throws if the call is stale. */
  async #withLock<T>(
    { id, host }: VmRef,
    { generation, signal }: Call,
    purpose: 'make' | 'change' | 'remove',
    find: (id: string) => Promise<T | null>,
    work: (found: T | null) => Promise<void>,
  ): Promise<void> {
    this.#requireHost(host)
    const { locks, fences } = this.#ctx
    await locks.with(id, signal, async () => {
      const found = await find(id)
      await fences.check(id, generation, purpose)
      if (found || purpose === 'make') await fences.remember(id, generation)
      await work(found)
    })
  }

  /** If a QEMU has the disk open, only that QEMU may resize it. */
  async #growImage(disk: DiskSpec, signal: AbortSignal): Promise<void> {
    const users = await this.#usersOf(disk.id)
    const user = users.find((candidate) => candidate.isRunning)
    if (user) await resizeInQemu(this.#ctx, user.id, disk.id, disk.sizeGib * 1024 ** 3)
    else await growImage(this.#ctx.disks.imageFile(disk.id), disk.sizeGib, signal)
  }

  async #usersOf(diskId: string): Promise<{ id: string; isRunning: boolean }[]> {
    const users = []
    for (const id of await this.#ctx.records.ids()) {
      const seen = await observe(this.#ctx, id)
      if (seen?.record.spec.disks.some((disk) => disk.id === diskId))
        users.push({ id, isRunning: seen.process !== null })
    }
    return users
  }

  /** A disk that was never attached has no host, so this host is used. */
  #here({ id, host }: DiskRef): VmRef {
    return { id, host: host || this.#ctx.hostName }
  }

  #requireHost(host: string): void {
    if (host !== this.#ctx.hostName) throw new EngineError('missing', `no such host: ${host}`)
  }
}

function requireVm(vm: VmRef, seen: Observation | null): Observation {
  if (!seen) throw noSuchVm(vm.id)
  return seen
}

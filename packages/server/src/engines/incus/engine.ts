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
  EngineUnreadable,
  type HostReport,
  type PowerAction,
  type VmRef,
  type VmSample,
  type VmSpec,
  type VmStatus,
  type WantedState,
} from '../engine.ts'
import { InOrder } from '../in-order.ts'
import { isLocalBridge, LocalNetworks } from './agent/local-networks.ts'
import { BackgroundWork } from './background.ts'
import { Boots } from './boots.ts'
import { openConsole } from './console.ts'
import type { IncusContext } from './context.ts'
import { ensureInstance } from './creation.ts'
import { definitionOf, diskDevice, redefinition, subnetMark } from './definition.ts'
import { IncusEvents } from './events.ts'
import { Firewalls, type ProtectedVm } from './firewall.ts'
import { cordonMember } from './fleet/cordon.ts'
import { inventory } from './fleet/inventory.ts'
import { environmentOf, listMembers, type MemberList } from './fleet/members.ts'
import { numaNodesOfVm } from './fleet/resources.ts'
import { Survey } from './fleet/survey.ts'
import {
  changeExisting,
  changeInstance,
  deleteInstance,
  deviceOfDisk,
  findInstance,
  hasCrashed,
  type Instance,
  isOn,
  listNames,
  marks,
  requireInstance,
  vmIdOf,
  withDisk,
  withoutDisk,
} from './instances.ts'
import { removeLeftovers } from './leftovers.ts'
import { sampleInstances } from './metrics.ts'
import {
  dropNetworkIfUnused,
  ensureForward,
  removeForward,
  removeOrphanForwards,
  removeOwnForward,
} from './networks.ts'
import { Check, powerOff, removedDuringCreation, reset, shutDown, start } from './power.ts'
import { ensureProject } from './project.ts'
import { recordRemoval } from './removals.ts'
import { SerialLogs } from './serial.ts'
import { Statuses } from './status.ts'
import { Captures } from './storage/captures.ts'
import { Disks } from './storage/disks.ts'

const serialTailBytes = 64 * 1024
const cleanupMs = 3600_000
/** A cluster that lost its leader cannot be read for about a minute, while its guests continue to run. */
const clusterUnreadMs = 180_000
const clusterReadMs = 7_000

/**
 * Runs VMs on an Incus server or cluster. The only compare-and-swap in Incus is a conditional change of an
 * instance's configuration, so every call begins with such a change, which writes the call's generation. A
 * start cannot be conditional. Therefore an instance is created with a gate: a device that no host has, which
 * makes every start fail. The change that adds the GPUs opens the gate, and a stop or removal closes it again.
 */
export class IncusEngine implements Engine {
  readonly #ctx: IncusContext
  readonly #statuses: Statuses
  readonly #firewalls: Firewalls
  readonly #networks: { creations: InOrder; locals: LocalNetworks }
  readonly #background: BackgroundWork
  readonly #captures: Captures
  readonly #disks: Disks
  readonly #serial: SerialLogs
  readonly #events: IncusEvents
  readonly #survey: Survey
  readonly #watchers = new Set<(vmId: string) => void>()
  readonly #boots: Boots
  readonly #closing = new AbortController()
  /** Until Incus has reported whether it is a cluster, several URLs mean that it probably is. */
  #isCluster: boolean
  #preparation: Promise<unknown> | null = null
  #cleanupAtMs = 0

  constructor(ctx: IncusContext) {
    this.#ctx = ctx
    this.#isCluster = ctx.config.urls.length > 1
    this.#statuses = new Statuses(ctx)
    this.#firewalls = new Firewalls(ctx)
    this.#networks = { creations: new InOrder(), locals: new LocalNetworks(ctx) }
    this.#background = new BackgroundWork(ctx)
    this.#captures = new Captures(ctx, this.#background)
    this.#disks = new Disks(ctx, this.#captures, this.#background)
    this.#serial = new SerialLogs(ctx)
    this.#boots = new Boots(
      ctx,
      (vm, signal) => this.inspectVm(vm, signal),
      (vmId) => this.#notify(vmId),
    )
    this.#events = new IncusEvents(
      ctx.client,
      (name) => this.#notify(vmIdOf(name)),
      (isFirst) => !isFirst && void this.#notifyAll(),
      () => this.#survey.markChanged(),
    )
    this.#survey = new Survey(ctx, () => this.#events.isOpen)
  }

  async *inventory(
    signal: AbortSignal,
    _isDetailed?: (host: string) => boolean,
    mayBeBrief = false,
  ): AsyncIterable<HostReport> {
    const cluster = await this.#readCluster(signal, async (limit) => {
      const list = await this.#members(limit)
      const members = await this.#survey.recheckOffline(list.members, limit)
      const { server_version: version } = await environmentOf(this.#ctx, limit)
      return { ...list, members, version, uplink: await this.#survey.uplink(limit) }
    })
    const stored = { disks: this.#disks, captures: this.#captures }
    yield* inventory(this.#ctx, this.#statuses, stored, this.#survey, cluster, mayBeBrief, signal)
    await this.#cleanUp(signal).catch(() => {})
  }

  async #members(signal: AbortSignal): Promise<MemberList> {
    await this.#prepare(signal)
    const list = await listMembers(this.#ctx, signal)
    this.#isCluster = list.isCluster
    return list
  }

  /**
   * Reads data about the whole cluster. If the cluster does not respond, throws `EngineUnreadable`, because
   * its hosts may still be running.
   */
  async #readCluster<T>(signal: AbortSignal, read: (limit: AbortSignal) => Promise<T>): Promise<T> {
    try {
      return await read(AbortSignal.any([signal, AbortSignal.timeout(clusterReadMs)]))
    } catch (error) {
      if (signal.aborted || !this.#isCluster) throw error
      const { message } = error as Error
      throw new EngineUnreadable(`the cluster cannot be read: ${message}`, clusterUnreadMs, { cause: error })
    }
  }

  async ensureVm(spec: VmSpec, { firewall, power }: WantedState, call: Call): Promise<VmStatus | null> {
    await this.#prepare(call.signal)
    const known = await ensureInstance(this.#ctx, this.#disks, this.#networks, spec, firewall, call)
    const bridge = known.config[marks.bridge]!
    // The disks of a VM that is on are not changed.
    const pools = isOn(known) ? null : await this.#disks.placeAll(spec, call)
    await this.#ensureNetwork(spec, known, firewall, call.signal)
    const goal = power === 'on' ? 'on' : 'shut'
    const nodes = goal === 'on' && !isOn(known) ? await numaNodesOfVm(this.#ctx, spec, call.signal) : []
    const definition = pools && definitionOf(this.#ctx, spec, bridge, goal, nodes, pools)
    const { result: instance, check } = await Check.of(() =>
      changeInstance(this.#ctx, spec.id, call, (now) => {
        if (!definition || isOn(now) || hasCrashed(now)) return null
        return { ...redefinition(now, definition), isFresh: true }
      }),
    )
    if (!instance) throw removedDuringCreation(spec.id)
    if (power === 'on' && !isOn(instance) && !hasCrashed(instance))
      await start(this.#ctx, spec.id, check, call)
    const status = await this.inspectVm(spec, call.signal)
    if (status?.power === 'booting') this.#boots.watch(spec)
    return status
  }

  /** Sets up the VM's public address and firewall, which must apply before the VM starts. */
  async #ensureNetwork(
    spec: VmSpec,
    instance: Instance,
    firewall: WantedState['firewall'],
    signal: AbortSignal,
  ): Promise<void> {
    const bridge = instance.config[marks.bridge]!
    if (isLocalBridge(bridge)) return this.#networks.locals.ensure(spec, instance, firewall, signal)
    const vm = { id: spec.id, bridge, ...spec.network }
    await Promise.all([
      this.#firewalls.apply(vm, firewall.rules, firewall.generation, signal),
      ensureForward(this.#ctx, bridge, { ...vm, host: spec.host }, signal),
    ])
  }

  async powerVm(vm: VmRef, action: PowerAction, call: Call): Promise<void> {
    await { shutdown: shutDown, off: powerOff, reset }[action](this.#ctx, vm.id, call)
    if (action === 'reset') this.#boots.watch(vm)
  }

  async removeVm(vm: VmRef, call: Call): Promise<void> {
    const before = await changeInstance(this.#ctx, vm.id, call)
    await recordRemoval(this.#ctx, vm.id, call)
    // The instance may have been created between the two lines above; a later creation finds the record of
    // the removal.
    const instance = before ?? (await changeInstance(this.#ctx, vm.id, call))
    if (!instance) {
      // If an operator removed the instance, Incus still has its forward and rules.
      for (const bridge of await removeOrphanForwards(this.#ctx, vm, call.signal))
        await this.#firewalls.remove({ id: vm.id, bridge }, call.signal)
      return
    }
    await powerOff(this.#ctx, vm.id, call)
    const { [marks.bridge]: bridge = '', [marks.publicAddress]: publicAddress = '' } = instance.config
    // For a local bridge, the member's agent cleans up when the instance is deleted.
    const isManaged = bridge !== '' && !isLocalBridge(bridge)
    if (isManaged) {
      await removeForward(this.#ctx, bridge, { host: instance.location, publicAddress }, call.signal)
      await this.#firewalls.remove({ id: vm.id, bridge }, call.signal)
    }
    await deleteInstance(this.#ctx, vm.id, call.signal)
    this.#serial.forget(vm.id)
    if (isManaged) await dropNetworkIfUnused(this.#ctx, bridge, call.signal)
  }

  async inspectVm(vm: VmRef, signal: AbortSignal): Promise<VmStatus | null> {
    const instance = await findInstance(this.#ctx, vm.id, signal)
    if (!instance) return null
    const bridge = instance.config[marks.bridge] ?? ''
    const generation = isLocalBridge(bridge)
      ? await this.#networks.locals.generation({ vmId: vm.id, host: instance.location }, signal)
      : await this.#firewalls.generation({ id: vm.id, bridge }, signal)
    return this.#statuses.inspect(instance, generation, signal)
  }

  cordonHost(name: string, isCordoned: boolean, signal: AbortSignal): Promise<void> {
    return cordonMember(this.#ctx, name, isCordoned, signal)
  }

  ensureDisk(disk: DiskSpec, call: Call): Promise<void> {
    return this.#prepare(call.signal).then(() => this.#disks.ensure(disk, call))
  }

  growDisk(disk: DiskSpec, call: Call): Promise<void> {
    return this.#disks.grow(disk, call)
  }

  removeDisk(disk: DiskRef, call: Call): Promise<void> {
    return this.#disks.remove(disk, call)
  }

  inspectDisk(disk: DiskRef, signal: AbortSignal): Promise<DiskStatus | null> {
    return this.#disks.find(disk, signal)
  }

  async attachDisk(vm: VmRef, disk: AttachedDisk, call: Call): Promise<void> {
    await changeExisting(this.#ctx, vm.id, call)
    const devices = diskDevice(this.#ctx, disk, await this.#disks.place(disk, vm.host, call))
    await changeExisting(this.#ctx, vm.id, call, (now) =>
      deviceOfDisk(now, disk.id) ? null : { devices, config: withDisk(now, disk.id) },
    )
  }

  async detachDisk(vm: VmRef, disk: DiskRef, call: Call): Promise<void> {
    await changeExisting(this.#ctx, vm.id, call, (now) => {
      const name = deviceOfDisk(now, disk.id)
      const isListed = now.config[marks.disks]?.includes(disk.id)
      if (name === undefined && !isListed) return null
      return { config: withoutDisk(now, disk.id), ...(name !== undefined && { devices: { [name]: null } }) }
    })
  }

  capture(capture: CaptureSpec, call: Call): Promise<void> {
    return this.#prepare(call.signal).then(() => this.#captures.ensure(capture, call))
  }

  removeCapture(capture: CaptureRef, call: Call): Promise<void> {
    return this.#captures.remove(capture, call)
  }

  inspectCapture(capture: CaptureRef, signal: AbortSignal): Promise<CaptureStatus | null> {
    return this.#captures.find(capture, signal)
  }

  async setPublicAddress(vm: VmRef, publicAddress: string, call: Call): Promise<void> {
    const before = await changeExisting(this.#ctx, vm.id, call)
    const { [marks.bridge]: bridge = '', [marks.publicAddress]: old = '' } = before.config
    if (isLocalBridge(bridge)) return this.#networks.locals.setPublicAddress(vm, publicAddress, call)
    const forwarded = { id: vm.id, host: before.location }
    if (old !== publicAddress)
      await removeOwnForward(this.#ctx, bridge, { ...forwarded, publicAddress: old }, call.signal)
    const { devices } = await changeExisting(this.#ctx, vm.id, call, () => ({
      config: { [marks.publicAddress]: publicAddress },
    }))
    const privateAddress = devices.eth0?.['ipv4.address'] ?? ''
    await ensureForward(this.#ctx, bridge, { ...forwarded, publicAddress, privateAddress }, call.signal)
  }

  async applyFirewall(vm: VmRef, rules: CompiledRule[], call: Call): Promise<void> {
    const { generation, signal } = call
    const instance = await requireInstance(this.#ctx, vm.id, signal)
    const isNewest = isLocalBridge(instance.config[marks.bridge] ?? '')
      ? await this.#networks.locals.apply(instance, rules, generation, signal)
      : await this.#firewalls.apply(protectedVm(instance), rules, generation, signal)
    if (!isNewest)
      throw new EngineError('stale', `${vm.id}: its firewall is newer than generation ${call.generation}`)
  }

  async serialLog(vm: VmRef, offset: number | undefined, signal: AbortSignal) {
    const instance = await requireInstance(this.#ctx, vm.id, signal)
    const { bytes, startsAt } = await this.#serial.read(instance, signal)
    const wanted = offset === undefined ? bytes.length - serialTailBytes : offset - startsAt
    // An offset beyond the end belongs to an earlier log: the guest has restarted.
    const from = wanted > bytes.length ? 0 : Math.max(0, wanted)
    const content = bytes.subarray(from, from + serialTailBytes)
    return { content: content.toString('utf8'), nextOffset: startsAt + from + content.length }
  }

  async *sample(signal: AbortSignal): AsyncIterable<VmSample> {
    const members = await this.#readCluster(signal, (limit) => this.#members(limit))
    yield* sampleInstances(this.#ctx, members, signal)
  }

  async openConsole(vm: VmRef, signal: AbortSignal): Promise<EngineConsole> {
    const instance = await requireInstance(this.#ctx, vm.id, signal)
    if (!isOn(instance)) throw new EngineError('rejected', 'The VM is off: it has no console.')
    return openConsole(this.#ctx, vm.id, signal)
  }

  watch(onChange: (vmId: string) => void): () => void {
    this.#watchers.add(onChange)
    return () => this.#watchers.delete(onChange)
  }

  async close(): Promise<void> {
    this.#closing.abort()
    this.#boots.close()
    this.#background.close()
    // Closing the connections also ends requests to an Incus that hangs.
    await Promise.all([this.#events.close(), this.#ctx.client.close()])
  }

  #notify(vmId: string | null): void {
    if (vmId) for (const onChange of this.#watchers) onChange(vmId)
  }

  /** Incus does not repeat events that were missed, so any VM may have changed. */
  async #notifyAll(): Promise<void> {
    const names = await listNames(this.#ctx, this.#closing.signal).catch(() => [])
    for (const name of names) this.#notify(vmIdOf(name))
  }

  async #cleanUp(signal: AbortSignal): Promise<void> {
    if (performance.now() < this.#cleanupAtMs) return
    this.#cleanupAtMs = performance.now() + cleanupMs
    await removeLeftovers(this.#ctx, signal)
  }

  #prepare(signal: AbortSignal): Promise<unknown> {
    this.#preparation ??= ensureProject(this.#ctx, signal).catch((error) => {
      this.#preparation = null
      throw error
    })
    return this.#preparation
  }
}

const protectedVm = ({ config, devices }: Instance): ProtectedVm => ({
  id: config[marks.id]!,
  bridge: config[marks.bridge] ?? '',
  privateAddress: devices.eth0?.['ipv4.address'] ?? '',
  subnetCidr: config[subnetMark] ?? '0.0.0.0/32',
})

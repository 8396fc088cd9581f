import { setTimeout as sleep } from 'node:timers/promises'
import type { CompiledRule } from '../../domain/firewall.ts'
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
import { InOrder } from '../in-order.ts'
import type { IncusContext } from './context.ts'
import { cordonMember } from './cordon.ts'
import { closed, creationOf, definitionOf, diskDevice, redefinition, subnetMark } from './definition.ts'
import { Disks } from './disks.ts'
import { IncusEvents } from './events.ts'
import { Firewalls, type ProtectedVm } from './firewall.ts'
import { forgetLongGone, markGone, requireNotGone } from './gone.ts'
import {
  changeInstance,
  changePower,
  createInstance,
  deleteInstance,
  deviceOfDisk,
  findInstance,
  goalOf,
  hasDied,
  type Instance,
  instanceName,
  isOn,
  listNames,
  marks,
  nextStart,
  vmIdOf,
} from './instances.ts'
import { inventory } from './inventory.ts'
import { memberNames } from './members.ts'
import {
  dropNetworkIfUnused,
  dropUnusedNetworks,
  ensureForward,
  ensureNetwork,
  hasNetwork,
  removeForward,
} from './networks.ts'
import { ensureProject } from './project.ts'
import { nodesBeside, readResources } from './resources.ts'
import { SerialLogs } from './serial.ts'
import { Statuses } from './status.ts'

const serialTailBytes = 64 * 1024
// A container answers within the second, a VM may take minutes.
const [firstBootLookMs, lastBootLookMs] = [50, 1_000]
const tidyMs = 3600_000
/** Incus changes nothing about an instance while it waits for its guest: it asks, and the waiting is ours. */
const askingS = 1

/**
 * VMs of an Incus server or cluster. Of all that Incus does, only a conditional change of an instance's configuration is a
 * compare-and-swap, so every call begins with one that writes its generation. A start cannot be made conditional: an
 * instance is made with a gate, a device that no host has and without which it would start; the change that gives it its
 * GPUs opens the gate, and whoever stops or removes it closes it again.
 */
export class IncusEngine implements Engine {
  readonly #ctx: IncusContext
  readonly #statuses: Statuses
  readonly #firewalls: Firewalls
  readonly #networksMade = new InOrder()
  readonly #disks: Disks
  readonly #serial: SerialLogs
  readonly #events: IncusEvents
  readonly #watchers = new Set<(vmId: string) => void>()
  readonly #booting = new Set<string>()
  readonly #closing = new AbortController()
  #isPrepared: Promise<unknown> | null = null
  #tidyAtMs = 0

  constructor(ctx: IncusContext) {
    this.#ctx = ctx
    this.#statuses = new Statuses(ctx)
    this.#firewalls = new Firewalls(ctx)
    this.#disks = new Disks(ctx)
    this.#serial = new SerialLogs(ctx)
    this.#events = new IncusEvents(
      ctx.client,
      (name) => this.#tell(vmIdOf(name)),
      () => void this.#tellOfAll(),
    )
  }

  async *inventory(signal: AbortSignal): AsyncIterable<HostReport> {
    await this.#prepared(signal)
    yield* inventory(this.#ctx, this.#statuses, this.#disks, signal)
    await this.#tidyUp(signal).catch(() => {})
  }

  async ensureVm(spec: VmSpec, { firewall, power }: WantedState, call: Call): Promise<VmStatus | null> {
    await this.#prepared(call.signal)
    const known = await this.#ensureInstance(spec, call)
    const bridge = known.config[marks.bridge]!
    const vm = { id: spec.id, bridge, ...spec.network }
    if (!isOn(known)) await this.#placeDisks(spec, call)
    await Promise.all([
      this.#firewalls.apply(vm, firewall.rules, firewall.generation, call.signal),
      ensureForward(this.#ctx, bridge, { ...vm, host: spec.host }, call.signal),
    ])
    const goal = power === 'on' ? 'on' : 'shut'
    const nodes = goal === 'on' && !isOn(known) ? await nodesOf(this.#ctx, spec, call.signal) : []
    const checkedAtMs = performance.now()
    const definition = definitionOf(this.#ctx, spec, bridge, goal, nodes)
    const instance = await changeInstance(this.#ctx, spec.id, call, (now) => {
      if (isOn(now) || hasDied(now)) return null
      return { ...redefinition(now, definition), isFresh: true }
    })
    if (!instance) throw vanished(spec.id)
    if (power === 'on' && !isOn(instance) && !hasDied(instance)) await this.#start(spec.id, checkedAtMs, call)
    const status = await this.inspectVm(spec, call.signal)
    if (status?.power === 'booting') this.#watchBoot(spec)
    return status
  }

  async powerVm(vm: VmRef, action: PowerAction, call: Call): Promise<void> {
    switch (action) {
      case 'shutdown':
        return this.#shutDown(vm, call)
      case 'off':
        return this.#powerOff(vm, call)
      case 'reset':
        return this.#reset(vm, call)
    }
  }

  async removeVm(vm: VmRef, call: Call): Promise<void> {
    const before = await changeInstance(this.#ctx, vm.id, call, () => null)
    await markGone(this.#ctx, vm.id, call)
    // It may have been made between the look and the mark; what is made later finds the mark.
    const instance = before ?? (await changeInstance(this.#ctx, vm.id, call, () => null))
    if (!instance) return
    await this.#powerOff(vm, call)
    const { [marks.bridge]: bridge = '', [marks.publicAddress]: publicAddress = '' } = instance.config
    await removeForward(this.#ctx, bridge, { host: instance.location, publicAddress }, call.signal)
    await this.#firewalls.remove({ id: vm.id, bridge }, call.signal)
    await deleteInstance(this.#ctx, vm.id, call.signal)
    this.#serial.forget(vm.id)
    if (bridge) await dropNetworkIfUnused(this.#ctx, bridge, call.signal)
  }

  async inspectVm(vm: VmRef, signal: AbortSignal): Promise<VmStatus | null> {
    const found = await findInstance(this.#ctx, vm.id, signal)
    if (!found) return null
    const bridge = found.instance.config[marks.bridge] ?? ''
    const generation = await this.#firewalls.generation({ id: vm.id, bridge }, signal)
    return this.#statuses.inspected(found.instance, generation, signal)
  }

  cordonHost(name: string, isCordoned: boolean, signal: AbortSignal): Promise<void> {
    return cordonMember(this.#ctx, name, isCordoned, signal)
  }

  ensureDisk(disk: DiskSpec, call: Call): Promise<void> {
    return this.#prepared(call.signal).then(() => this.#disks.ensure(disk, call))
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
    required(vm, await changeInstance(this.#ctx, vm.id, call, () => null))
    await this.#disks.place(disk, vm.host, call)
    const change = { devices: diskDevice(this.#ctx, disk) }
    const decide = (now: Instance) => (deviceOfDisk(now, disk.id) ? null : change)
    required(vm, await changeInstance(this.#ctx, vm.id, call, decide))
  }

  async detachDisk(vm: VmRef, disk: DiskRef, call: Call): Promise<void> {
    const decide = (now: Instance) => {
      const name = deviceOfDisk(now, disk.id)
      return name === undefined ? null : { devices: { [name]: null } }
    }
    required(vm, await changeInstance(this.#ctx, vm.id, call, decide))
  }

  async applyFirewall(vm: VmRef, rules: CompiledRule[], call: Call): Promise<void> {
    const found = await findInstance(this.#ctx, vm.id, call.signal)
    const instance = required(vm, found?.instance)
    if (!(await this.#firewalls.apply(protectedVm(instance), rules, call.generation, call.signal)))
      throw new EngineError('stale', `${vm.id}: a newer firewall is in force than ${call.generation}`)
  }

  async serialLog(vm: VmRef, offset: number | undefined, signal: AbortSignal) {
    const instance = required(vm, (await findInstance(this.#ctx, vm.id, signal))?.instance)
    const { bytes, startsAt } = await this.#serial.read(instance, signal)
    const wanted = offset === undefined ? bytes.length - serialTailBytes : offset - startsAt
    // Beyond its end was another log: this one began when the guest started anew by itself.
    const from = wanted > bytes.length ? 0 : Math.max(0, wanted)
    const content = bytes.subarray(from, from + serialTailBytes)
    return { content: content.toString('utf8'), nextOffset: startsAt + from + content.length }
  }

  watch(onChange: (vmId: string) => void): () => void {
    this.#watchers.add(onChange)
    return () => this.#watchers.delete(onChange)
  }

  async close(): Promise<void> {
    this.#closing.abort()
    // Cut from its connection, even one that waits for an Incus that hangs comes to its end.
    await Promise.all([this.#events.close(), this.#ctx.client.close()])
  }

  /** Returns the VM's instance, made by this call or before it. */
  async #ensureInstance(spec: VmSpec, call: Call): Promise<Instance> {
    const known = await changeInstance(this.#ctx, spec.id, call, () => null)
    if (known) return known
    await requireNotGone(this.#ctx, spec.id, call)
    if (!spec.isNew) throw new EngineError('lost', `the OS disk of ${spec.id} is gone`)
    const bridge = await ensureNetwork(this.#ctx, this.#networksMade, spec.network, call.signal)
    const definition = definitionOf(this.#ctx, spec, bridge, 'shut', [])
    const body = creationOf(this.#ctx, spec, instanceName(spec.id), call.generation, definition)
    const isCluster = (await memberNames(this.#ctx, call.signal)) !== null
    await this.#placeDisks(spec, call)
    await createInstance(this.#ctx, body, isCluster ? spec.host : null, call.signal).catch(async (error) => {
      // The last VM of the network may have left with it meanwhile.
      if (await hasNetwork(this.#ctx, bridge, call.signal)) throw error
      throw new EngineError('unavailable', `the network of ${spec.id} went while it was made`, {
        cause: error,
      })
    })
    // Removed meanwhile: whoever did so may have looked before it was there.
    await requireNotGone(this.#ctx, spec.id, call).catch(async (error) => {
      await deleteInstance(this.#ctx, spec.id, call.signal)
      throw error
    })
    const made = await changeInstance(this.#ctx, spec.id, call, () => null)
    if (!made) throw new EngineError('unavailable', `${spec.id} was made and is not there`)
    return made
  }

  async #placeDisks({ disks, host }: VmSpec, call: Call): Promise<void> {
    for (const disk of disks) await this.#disks.place(disk, host, call)
  }

  async #start(vmId: string, checkedAtMs: number, call: Call): Promise<void> {
    const options = { signal: call.signal, isAwaited: true, timeoutMs: 60_000 }
    await changePower(this.#ctx, vmId, { action: 'start' }, checkedAtMs, options).catch(async (error) => {
      // Of two that start it, one is told that it runs. What never ran has not died, and is started again.
      const now = await changeInstance(this.#ctx, vmId, call, (seen) =>
        isOn(seen) ? null : { isFresh: true },
      )
      // Whoever made it could not end that, and Incus took it away: it is to be made anew.
      if (!now) throw vanished(vmId)
      if (isOn(now)) return
      // What Incus no longer knows of is the start.
      throw error.kind === 'missing' ? new EngineError('unavailable', `the start of ${vmId} was lost`) : error
    })
  }

  async #shutDown(vm: VmRef, call: Call): Promise<void> {
    const checkedAtMs = performance.now()
    let isAsked = false
    const decide = (now: Instance) => {
      isAsked = isOn(now) && goalOf(now) !== 'stopping'
      return isAsked ? { config: { [marks.goal]: 'stopping' } } : null
    }
    const instance = required(vm, await changeInstance(this.#ctx, vm.id, call, decide))
    if (!isOn(instance) || !isAsked) return
    const options = { signal: call.signal, isAwaited: false }
    await changePower(this.#ctx, vm.id, { action: 'stop', timeout: askingS }, checkedAtMs, options)
  }

  async #powerOff(vm: VmRef, call: Call): Promise<void> {
    const checkedAtMs = performance.now()
    const instance = required(
      vm,
      await changeInstance(this.#ctx, vm.id, call, (now) =>
        isOn(now)
          ? goalOf(now) === 'stopping'
            ? null
            : { config: { [marks.goal]: 'stopping' } }
          : closed(now),
      ),
    )
    if (!isOn(instance)) return
    const options = { signal: call.signal, isAwaited: true, timeoutMs: 60_000 }
    await changePower(this.#ctx, vm.id, { action: 'stop', force: true }, checkedAtMs, options).catch(
      async (error) => {
        const now = await findInstance(this.#ctx, vm.id, call.signal)
        if (now && isOn(now.instance)) throw error
      },
    )
    await changeInstance(this.#ctx, vm.id, call, (now) => (isOn(now) ? null : closed(now)))
  }

  /** Written after it is done, so that whoever died in between does it again. */
  async #reset(vm: VmRef, call: Call): Promise<void> {
    const checkedAtMs = performance.now()
    const decide = (now: Instance) => {
      if (now.config[marks.reset] === String(call.generation)) return null
      if (!isOn(now) && goalOf(now) !== 'on') throw new EngineError('rejected', `${vm.id} is off`)
      return { config: { [marks.goal]: 'on', ...nextStart(now) } }
    }
    const instance = required(vm, await changeInstance(this.#ctx, vm.id, call, decide))
    if (instance.config[marks.reset] === String(call.generation)) return
    const action = isOn(instance)
      ? ({ action: 'restart', force: true } as const)
      : ({ action: 'start' } as const)
    const options = { signal: call.signal, isAwaited: true, timeoutMs: 60_000 }
    await changePower(this.#ctx, vm.id, action, checkedAtMs, options)
    const done = { config: { [marks.reset]: String(call.generation) } }
    await changeInstance(this.#ctx, vm.id, call, () => done)
    this.#watchBoot(vm)
  }

  /** Incus tells of a start, but not of a guest that answers. */
  #watchBoot(vm: VmRef): void {
    if (this.#booting.has(vm.id)) return
    this.#booting.add(vm.id)
    const { signal } = this.#closing
    const look = async () => {
      for (
        let pauseMs = firstBootLookMs;
        !signal.aborted;
        pauseMs = Math.min(pauseMs * 1.5, lastBootLookMs)
      ) {
        const status = await this.inspectVm(vm, signal).catch(() => null)
        if (status?.power !== 'booting') return
        await sleep(pauseMs, undefined, { signal, ref: false })
      }
    }
    void look()
      .catch(() => {})
      .finally(() => {
        this.#booting.delete(vm.id)
        this.#tell(vm.id)
      })
  }

  #tell(vmId: string | null): void {
    if (vmId) for (const onChange of this.#watchers) onChange(vmId)
  }

  /** What happened while nobody listened is not told again: anything may have changed. */
  async #tellOfAll(): Promise<void> {
    const names = await listNames(this.#ctx, this.#closing.signal).catch(() => [])
    for (const name of names) this.#tell(vmIdOf(name))
  }

  /** What nobody misses, now and then: any worker may do it, at any time. */
  async #tidyUp(signal: AbortSignal): Promise<void> {
    if (performance.now() < this.#tidyAtMs) return
    this.#tidyAtMs = performance.now() + tidyMs
    await forgetLongGone(this.#ctx, signal)
    await dropUnusedNetworks(this.#ctx, signal)
  }

  /** The Incus project in which everything of ours lives. */
  #prepared(signal: AbortSignal): Promise<unknown> {
    this.#isPrepared ??= ensureProject(this.#ctx, signal).catch((error) => {
      this.#isPrepared = null
      throw error
    })
    return this.#isPrepared
  }
}

/** The NUMA nodes whose cores the VM runs on; a container has no GPUs to be near to. */
async function nodesOf(ctx: IncusContext, spec: VmSpec, signal: AbortSignal): Promise<number[]> {
  if (ctx.config.instanceType === 'container' || spec.gpus.length === 0) return []
  const isCluster = (await memberNames(ctx, signal)) !== null
  const resources = await readResources(ctx, isCluster ? spec.host : null, signal)
  const pciAddresses = spec.gpus.map(({ pciAddress }) => pciAddress)
  return nodesBeside(resources, pciAddresses, spec.cpuCores)
}

const vanished = (vmId: string) => new EngineError('unavailable', `${vmId} vanished while it was being made`)

function required(vm: VmRef, instance: Instance | undefined): Instance {
  if (!instance) throw new EngineError('missing', `no such VM: ${vm.id}`)
  return instance
}

const protectedVm = ({ config, devices }: Instance): ProtectedVm => ({
  id: config[marks.id]!,
  bridge: config[marks.bridge] ?? '',
  privateAddress: devices.eth0?.['ipv4.address'] ?? '',
  subnetCidr: config[subnetMark] ?? '0.0.0.0/32',
})

import { createHash } from 'node:crypto'
import type { CompiledRule } from '../../../domain/firewall.ts'
import { type Call, EngineError, noSuchVm, type VmRef, type VmSpec, type WantedState } from '../../engine.ts'
import type { IncusContext } from '../context.ts'
import {
  changeExisting,
  changeInstance,
  findInstance,
  generationOf,
  type Instance,
  isOn,
  marks,
} from '../instances.ts'
import { type GuestNetwork, generationOfVersion, guestNetworkKey, guestNetworkOf } from './guest-network.ts'
import { AgentReports } from './reports.ts'
import { isVxlanReservation, VxlanNumbers, vxlanReservationOf } from './vxlan-numbers.ts'

type Network = VmSpec['network']
type Firewall = WantedState['firewall']

const maxAttempts = 5

const hashOf = ({ networkId, subnetCidr }: Network) =>
  createHash('sha256').update(`${networkId} ${subnetCidr}`).digest('hex')
/** Returns the name of the bridge that the members' agents create for a subnet. */
export const localBridgeOf = (network: Network) => `sl${hashOf(network).slice(0, 11)}`
export const isLocalBridge = (name: string) => name.startsWith('sl')

/** Returns the profiles, including the one that reserves the network's VXLAN number. */
export const withVxlanReservation = (profiles: string[], { vni }: Pick<GuestNetwork, 'vni'>) => [
  ...profiles.filter((name) => !isVxlanReservation(name)),
  vxlanReservationOf(vni),
]

const isEqual = (first: string[], second: string[]) => first.join(' ') === second.join(' ')

/**
 * Networks that agents create on each member. All their data is in the configuration of instances. They need
 * no cluster objects, which Incus would have to send to all members.
 */
export class LocalNetworks {
  readonly reports: AgentReports
  readonly #ctx: IncusContext
  readonly #numbers: VxlanNumbers

  constructor(ctx: IncusContext) {
    this.#ctx = ctx
    this.#numbers = new VxlanNumbers(ctx)
    this.reports = new AgentReports(ctx)
  }

  /**
   * Returns true if this process has already used a local network for the subnet. All VMs of a subnet use the
   * same type of network.
   */
  isInUse = (network: Network) => this.#numbers.isKnown(localBridgeOf(network))

  /** Returns the network of a new VM. */
  async guestOf(spec: VmSpec, firewall: Firewall, signal: AbortSignal): Promise<GuestNetwork> {
    const { network } = spec
    const bridge = localBridgeOf(network)
    return {
      ...{ vmId: spec.id, bridge, vni: await this.#numbers.numberOf(bridge, hashOf(network), signal) },
      ...{ subnetCidr: network.subnetCidr, gateway: network.gateway, publicAddress: network.publicAddress },
      ...{ macAddress: network.macAddress.toLowerCase(), privateAddress: network.privateAddress },
      firewall: { generation: firewall.generation, rules: firewall.rules },
    }
  }

  /** Throws `unavailable` if another subnet may have this network's VXLAN number. */
  requireNumber = ({ vni, bridge }: GuestNetwork, signal: AbortSignal) =>
    this.#numbers.requireOwn(vni, bridge, signal)

  /**
   * Gives a VM its network and firewall, and returns when its member has applied both. A newer firewall is
   * kept, and so is the network of a VM that is on.
   */
  async ensure(spec: VmSpec, instance: Instance, firewall: Firewall, signal: AbortSignal): Promise<void> {
    const wanted = await this.guestOf(spec, firewall, signal)
    const write = this.#write(instance, signal, (now, isRunning) => {
      const isNewer = now !== null && now.firewall.generation > firewall.generation
      const base = isRunning && now ? now : wanted
      return { ...base, firewall: isNewer ? now.firewall : wanted.firewall }
    })
    // The check must begin after the write, which adds the number's profile to the instance.
    await write.finally(() => isOn(instance) || this.requireNumber(wanted, signal))
  }

  /**
   * Writes the address and its mark in one change of the instance, and waits until the member's kernel
   * applies it.
   */
  async setPublicAddress(vm: VmRef, publicAddress: string, call: Call): Promise<void> {
    let written: GuestNetwork | null = null
    const { location } = await changeExisting(this.#ctx, vm.id, call, ({ config }) => {
      const guest = guestNetworkOf(config)
      written = guest && { ...guest, publicAddress }
      const network = written && { [guestNetworkKey]: JSON.stringify(written) }
      return { config: { [marks.publicAddress]: publicAddress, ...network } }
    })
    if (written) await this.reports.waitFor(written, location, call.signal)
  }

  /** Returns false, and keeps the applied firewall, if that is newer. */
  async apply(
    instance: Instance,
    rules: CompiledRule[],
    generation: number,
    signal: AbortSignal,
  ): Promise<boolean> {
    let isNewest = true
    await this.#write(instance, signal, (now) => {
      if (!now)
        throw new EngineError('unavailable', `${instance.name} has no network that an agent can apply`)
      isNewest = now.firewall.generation <= generation
      return isNewest ? { ...now, firewall: { generation, rules } } : now
    })
    return isNewest
  }

  /** Returns the generation of the firewall that the VM's member applies; 0 if none. */
  async generation({ vmId, host }: { vmId: string; host: string }, signal: AbortSignal): Promise<number> {
    return generationOfVersion((await this.reports.of(host, signal))?.applied[vmId])
  }

  async #write(
    instance: Instance,
    signal: AbortSignal,
    change: (now: GuestNetwork | null, isRunning: boolean) => GuestNetwork,
  ): Promise<void> {
    const vmId = instance.name.replace(/^vm-/, '')
    let seen: Instance | undefined = instance
    for (let attempt = 0; seen && attempt < maxAttempts; attempt++) {
      let written: GuestNetwork | undefined
      const call = { generation: generationOf(seen), signal }
      const changed = changeInstance(this.#ctx, vmId, call, (now) => {
        written = change(guestNetworkOf(now.config), isOn(now))
        const text = JSON.stringify(written)
        const profiles = isOn(now) ? now.profiles : withVxlanReservation(now.profiles, written)
        if (now.config[guestNetworkKey] === text && isEqual(profiles, now.profiles)) return null
        return { profiles, config: { [guestNetworkKey]: text } }
      })
      const after = await changed.catch((error) => {
        // The VM's generation has increased since the instance was read. This does not make the firewall
        // stale.
        if (error instanceof EngineError && error.kind === 'stale') return null
        throw error
      })
      if (after) return this.reports.waitFor(written!, after.location, signal)
      seen = await findInstance(this.#ctx, vmId, signal)
    }
    if (!seen) throw noSuchVm(vmId)
    throw new EngineError(
      'unavailable',
      `the network of VM ${vmId} could not be written: other processes changed the VM during each of ${maxAttempts} attempts`,
    )
  }
}

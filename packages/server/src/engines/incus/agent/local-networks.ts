import { createHash } from 'node:crypto'
import type { CompiledRule } from '../../../domain/firewall.ts'
import { type Call, EngineError, noSuchVm, type VmRef, type VmSpec, type WantedState } from '../../engine.ts'
import { isDuplicate } from '../client.ts'
import type { IncusContext } from '../context.ts'
import {
  changeExisting,
  changeInstance,
  findInstance,
  generationOf,
  type Instance,
  marks,
} from '../instances.ts'
import { findProfile, type Profile } from '../profiles.ts'
import { type GuestNetwork, generationOfVersion, guestNetworkKey, guestNetworkOf } from './guest-network.ts'
import { AgentReports } from './reports.ts'

type Network = VmSpec['network']
type Firewall = WantedState['firewall']

const maxVni = 0xffffff
const maxProbes = 64
const maxAttempts = 5
const subnetKey = 'user.slipway.subnet'

const hashOf = ({ networkId, subnetCidr }: Network) =>
  createHash('sha256').update(`${networkId} ${subnetCidr}`).digest('hex')
/** Returns the name of the bridge that the agents of members create for one subnet. */
export const localBridgeOf = (network: Network) => `sl${hashOf(network).slice(0, 11)}`
export const isLocalBridge = (name: string) => name.startsWith('sl')

/**
 * Networks that agents create on each member. They need no objects of the cluster, which Incus would have to send to all
 * members: all their data is in the configuration of instances.
 */
export class LocalNetworks {
  readonly reports: AgentReports
  readonly #ctx: IncusContext
  readonly #vnis = new Map<string, number>()

  constructor(ctx: IncusContext) {
    this.#ctx = ctx
    this.reports = new AgentReports(ctx)
  }

  /** Returns true if this process has created a VM in the subnet, which determines its kind of network. */
  isInUse = (network: Network) => this.#vnis.has(localBridgeOf(network))

  /** The network of a new VM. */
  async guestOf(spec: VmSpec, firewall: Firewall, signal: AbortSignal): Promise<GuestNetwork> {
    const { network } = spec
    const bridge = localBridgeOf(network)
    return {
      ...{ vmId: spec.id, bridge, vni: await this.#vniOf(network, bridge, signal) },
      ...{ subnetCidr: network.subnetCidr, gateway: network.gateway, publicAddress: network.publicAddress },
      ...{ macAddress: network.macAddress.toLowerCase(), privateAddress: network.privateAddress },
      firewall: { generation: firewall.generation, rules: firewall.rules },
    }
  }

  /**
   * Gives a VM its network and firewall, and returns when its member applies both. A newer firewall is kept, and so is the
   * network of a VM that is on.
   */
  async ensure(spec: VmSpec, instance: Instance, firewall: Firewall, signal: AbortSignal): Promise<void> {
    const wanted = await this.guestOf(spec, firewall, signal)
    await this.#write(instance, signal, (now, isOn) => {
      const isNewer = now !== null && now.firewall.generation > firewall.generation
      const base = isOn && now ? now : wanted
      return { ...base, firewall: isNewer ? now.firewall : wanted.firewall }
    })
  }

  /** Writes the address and its mark in one change of the instance, and waits until the member's kernel has it. */
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

  /** Returns false if a newer firewall is applied, which stays. */
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
    change: (now: GuestNetwork | null, isOn: boolean) => GuestNetwork,
  ): Promise<void> {
    const vmId = instance.name.replace(/^vm-/, '')
    let seen: Instance | undefined = instance
    for (let attempt = 0; seen && attempt < maxAttempts; attempt++) {
      let written: GuestNetwork | undefined
      const call = { generation: generationOf(seen), signal }
      const changed = changeInstance(this.#ctx, vmId, call, (now) => {
        written = change(guestNetworkOf(now.config), now.status !== 'Stopped')
        const text = JSON.stringify(written)
        return now.config[guestNetworkKey] === text ? null : { config: { [guestNetworkKey]: text } }
      })
      const after = await changed.catch((error) => {
        // The VM's generation has risen since it was read, which does not make its firewall stale.
        if (error instanceof EngineError && error.kind === 'stale') return null
        throw error
      })
      if (after) return this.reports.waitFor(written!, after.location, signal)
      seen = await findInstance(this.#ctx, vmId, signal)
    }
    if (!seen) throw noSuchVm(vmId)
    throw new EngineError(
      'unavailable',
      `${vmId} was changed ${maxAttempts} times in a row by other processes`,
    )
  }

  /**
   * Returns the VXLAN number of a subnet, the first one after its hash that no other subnet has. It is reserved by a
   * profile with the number in its name: if two processes create it at the same time, one fails.
   */
  async #vniOf(network: Network, bridge: string, signal: AbortSignal): Promise<number> {
    const known = this.#vnis.get(bridge)
    if (known !== undefined) return known
    const first = Number.parseInt(hashOf(network).slice(0, 6), 16)
    for (let probe = 0; probe < maxProbes; probe++) {
      const vni = 1 + ((first + probe) % maxVni)
      if ((await this.#reserve(vni, bridge, signal)).config[subnetKey] !== bridge) continue
      this.#vnis.set(bridge, vni)
      return vni
    }
    throw new EngineError('unavailable', `the location has no free VXLAN number for ${bridge}`)
  }

  async #reserve(vni: number, bridge: string, signal: AbortSignal): Promise<Pick<Profile, 'config'>> {
    const name = `vni-${vni}`
    const found = await findProfile(this.#ctx, name, signal)
    if (found) return found
    const config = { [subnetKey]: bridge }
    const body = { name, config, devices: {}, description: 'Slipway: the VXLAN number of a subnet' }
    const created = this.#ctx.client.change('POST', '/1.0/profiles', body, { signal }).catch((error) => {
      if (!isDuplicate(error)) throw error
    })
    await created
    return (await findProfile(this.#ctx, name, signal)) ?? { config: {} }
  }
}

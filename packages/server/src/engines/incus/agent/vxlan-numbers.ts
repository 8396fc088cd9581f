import { EngineError } from '../../engine.ts'
import { isDuplicate } from '../client.ts'
import type { IncusContext } from '../context.ts'
import { listInstances } from '../instances.ts'
import { findProfile, listProfiles, type Profile, removeProfile } from '../profiles.ts'
import { guestNetworkOf } from './guest-network.ts'

const maxVni = 0xffffff
const maxProbes = 64
const subnetKey = 'user.slipway.subnet'
const prefix = 'vni-'

/** The profile that reserves a number. All instances that use the number have this profile. */
export const vxlanReservationOf = (vni: number) => `${prefix}${vni}`
export const isVxlanReservation = (profile: string) => profile.startsWith(prefix)

/**
 * Reserves a VXLAN number for each subnet by creating an empty profile with the number in its name. If two
 * processes create the profile at the same time, one of them fails. Incus does not remove a profile that an
 * instance has, and does not create an instance with a profile that does not exist. So an instance first gets
 * the profile, and `requireOwn` then checks that the number belongs to the right subnet.
 */
export class VxlanNumbers {
  readonly #ctx: IncusContext
  readonly #known = new Map<string, number>()

  constructor(ctx: IncusContext) {
    this.#ctx = ctx
  }

  isKnown = (bridge: string) => this.#known.has(bridge)

  /** Reserves and returns the first number that no other subnet has, starting at the subnet's hash. */
  async numberOf(bridge: string, hash: string, signal: AbortSignal): Promise<number> {
    const known = this.#known.get(bridge)
    if (known !== undefined) return known
    const first = Number.parseInt(hash.slice(0, 6), 16)
    for (let probe = 0; probe < maxProbes; probe++) {
      const vni = 1 + ((first + probe) % maxVni)
      if ((await this.#reserve(vni, bridge, signal)).config[subnetKey] !== bridge) continue
      this.#known.set(bridge, vni)
      return vni
    }
    throw new EngineError(
      'unavailable',
      `found no free VXLAN number (VNI) for ${bridge} after ${maxProbes} attempts`,
    )
  }

  /**
   * Throws if the number was released after this process read it. Another subnet may have reserved it since.
   */
  async requireOwn(vni: number, bridge: string, signal: AbortSignal): Promise<void> {
    const found = await findProfile(this.#ctx, vxlanReservationOf(vni), signal)
    if (found?.config[subnetKey] === bridge) return
    this.#known.delete(bridge)
    throw new EngineError('unavailable', `the VXLAN number ${vni} of ${bridge} was released`)
  }

  async #reserve(vni: number, bridge: string, signal: AbortSignal): Promise<Pick<Profile, 'config'>> {
    const name = vxlanReservationOf(vni)
    const found = await findProfile(this.#ctx, name, signal)
    if (found) return found
    const config = { [subnetKey]: bridge }
    const body = { name, config, devices: {}, description: 'Slipway: the VXLAN number of a subnet' }
    await this.#ctx.client.change('POST', '/1.0/profiles', body, { signal }).catch((error) => {
      if (!isDuplicate(error)) throw error
    })
    return (await findProfile(this.#ctx, name, signal)) ?? { config: {} }
  }
}

/**
 * Releases the numbers of subnets without VMs. Instances that earlier versions created do not use the
 * profile of their subnet's number, so the configuration of all instances is checked too.
 */
export async function releaseUnusedNumbers(ctx: IncusContext, signal: AbortSignal): Promise<void> {
  const unused = (await listProfiles(ctx, signal)).filter(
    ({ name, used_by }) => isVxlanReservation(name) && used_by?.length === 0,
  )
  if (unused.length === 0) return
  const instances = await listInstances(ctx, signal)
  // If a member does not respond, Incus lists its instances without their configuration.
  if (instances.some(({ config }) => !config)) return
  const used = new Set(instances.map(({ config }) => vxlanReservationOf(guestNetworkOf(config)?.vni ?? 0)))
  for (const { name } of unused) if (!used.has(name)) await removeProfile(ctx, name, signal).catch(() => {})
}

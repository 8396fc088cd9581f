import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { cidrsOverlap, numberToAddress } from '../../domain/addresses.ts'
import type { VmSpec } from '../engine.ts'
import { EngineError } from '../engine.ts'
import type { InOrder } from '../in-order.ts'
import { isCode } from './client.ts'
import type { IncusContext } from './context.ts'
import { unavailable } from './instances.ts'
import { memberNames } from './members.ts'

/** An interface's name has at most 15 characters, and the tunnel of a bridge adds two. */
const hashOf = ({ networkId, subnetCidr }: VmSpec['network']) =>
  createHash('sha256').update(`${networkId} ${subnetCidr}`).digest('hex').slice(0, 11)

/** One bridge for each subnet of a VPC, or one network of OVN. Whoever has only the name sees by it which of them it is. */
export const bridgeOf = (network: VmSpec['network']) => `sw${hashOf(network)}`
export const ovnNetworkOf = (network: VmSpec['network']) => `so${hashOf(network)}`
export const isOvn = (name: string) => name.startsWith('so')

/** Between members the bridge is one segment by VXLAN, whose number comes from its name. */
const vniOf = (bridge: string) => 1 + (Number.parseInt(bridge.slice(2, 8), 16) % 0xfffffe)

/**
 * Makes network and firewall of a subnet where they are missing: of OVN where the cluster has an uplink for it. What no
 * rule allows is dropped from the first moment. Returns the network's name.
 */
export async function ensureNetwork(
  ctx: IncusContext,
  making: InOrder,
  network: VmSpec['network'],
  signal: AbortSignal,
): Promise<string> {
  // While there are VMs in it, a subnet stays what it is.
  const names = [bridgeOf(network), ovnNetworkOf(network)]
  for (const name of names)
    if (isWhole(await ctx.client.find<Network>(`/1.0/networks/${name}`, { signal }))) return name
  return making.do(bridgeOf(network), async () => {
    for (const name of names) if (await isMade(ctx, name, signal)) return name
    return makeMissing(ctx, network, signal)
  })
}

/** Incus calls a network so from its definition on until every member has it. */
const unfinished = ['Pending', 'Errored']
const isWhole = (found: { value: Network } | undefined) => found && !unfinished.includes(found.value.status)

/**
 * Whoever makes a network takes a second or two. One that stays unfinished was left so, by a member that went away or a
 * worker that died meanwhile: no guest can be in it, and it is removed, to be made anew.
 */
async function isMade(ctx: IncusContext, name: string, signal: AbortSignal): Promise<boolean> {
  const untilMs = performance.now() + makingMs
  for (;;) {
    const found = await ctx.client.find<Network>(`/1.0/networks/${name}`, { signal })
    if (isWhole(found)) return true
    if (!found) return false
    if (performance.now() > untilMs) break
    await sleep(lookMs, undefined, { signal })
  }
  await dropNetworkIfUnused(ctx, name, signal)
  return false
}

const makingMs = 20_000
const lookMs = 200

async function makeMissing(
  ctx: IncusContext,
  network: VmSpec['network'],
  signal: AbortSignal,
): Promise<string> {
  const uplink = await findUplink(ctx, signal)
  const name = uplink === undefined ? bridgeOf(network) : ovnNetworkOf(network)
  if (uplink === undefined) await requireFreeRange(ctx, network.subnetCidr, signal)
  await madeOnce(
    ctx.client.change('POST', '/1.0/network-acls', { name, ingress: [], egress: [], config: {} }, { signal }),
  )
  const config = {
    'ipv4.address': `${network.gateway}/${network.subnetCidr.split('/')[1]}`,
    'ipv4.nat': 'true',
    'ipv6.address': 'none',
    'security.acls': name,
    'security.acls.default.ingress.action': 'drop',
    'security.acls.default.egress.action': 'drop',
    'user.slipway.network': network.networkId,
  }
  if (uplink === undefined) await makeBridge(ctx, name, config, signal)
  else await makeNetwork(ctx, { name, type: 'ovn', config: { ...config, network: uplink } }, signal)
  return name
}

async function makeBridge(
  ctx: IncusContext,
  name: string,
  config: Record<string, string>,
  signal: AbortSignal,
): Promise<void> {
  const members = await memberNames(ctx, signal)
  const vxlan = {
    ...{ 'tunnel.v.protocol': 'vxlan', 'tunnel.v.id': String(vniOf(name)) },
    'tunnel.v.group': '239.27.0.1',
  }
  const body = { name, type: 'bridge' }
  for (const target of members ?? [])
    await madeOnce(ctx.client.change('POST', '/1.0/networks', body, { signal, query: { target } }))
  const whole = { ...config, 'dns.mode': 'none', ...(members && vxlan) }
  await makeNetwork(ctx, { ...body, config: whole }, signal)
}

const makeNetwork = (ctx: IncusContext, body: unknown, signal: AbortSignal) =>
  madeOnce(ctx.client.change('POST', '/1.0/networks', body, { signal, timeoutMs: 60_000 }))

export const hasNetwork = async (ctx: IncusContext, name: string, signal: AbortSignal) =>
  (await ctx.client.find(`/1.0/networks/${name}`, { signal })) !== undefined

/** The network by which those of OVN reach the world, where an operator has made one; with it OVN is used. */
export const findUplink = async (ctx: IncusContext, signal: AbortSignal): Promise<string | undefined> =>
  (await listNetworks(ctx, signal)).find(({ config }) => config?.['ipv4.ovn.ranges'])?.name

interface Network {
  name: string
  status: string
  config: Record<string, string>
  used_by?: string[]
}

const listNetworks = async (ctx: IncusContext, signal: AbortSignal) =>
  (await ctx.client.find<Network[]>('/1.0/networks', { signal, query: { recursion: '1' } }))?.value ?? []

const hasInstances = ({ used_by = [] }: Pick<Network, 'used_by'>) =>
  used_by.some((path) => path.startsWith('/1.0/instances/'))

/**
 * A bridge is on every member, and no member routes one range to two of them. Placement knows who has which range, but
 * not of networks that others made, nor of a bridge that could not be removed when its last VM left.
 */
async function requireFreeRange(ctx: IncusContext, cidr: string, signal: AbortSignal): Promise<void> {
  const overlapping = async () =>
    (await listNetworks(ctx, signal)).filter(({ name, config }) => {
      if (isOvn(name)) return false
      const block = blockOf(config?.['ipv4.address'] ?? '')
      return block !== null && cidrsOverlap(block, cidr)
    })
  const isLeft = (network: Network) =>
    'user.slipway.network' in network.config && network.used_by !== undefined && !hasInstances(network)
  const found = await overlapping()
  for (const { name } of found.filter(isLeft)) await dropNetworkIfUnused(ctx, name, signal)
  const [taken] = found.some(isLeft) ? await overlapping() : found
  if (!taken) return
  if (isLeft(taken))
    throw new EngineError(
      'unavailable',
      `the network ${taken.name}, which nobody uses any more, has the range ${cidr} and is not removed yet`,
    )
  throw new EngineError(
    'rejected',
    `the range ${cidr} overlaps with the network ${taken.name} of this location, and bridges cannot have it twice: give the VPC another range`,
  )
}

/** The block of a gateway's address, such as 172.27.0.1/20; null where there is none. */
export function blockOf(gateway: string): string | null {
  const parts = /^(\d+)\.(\d+)\.(\d+)\.(\d+)\/(\d+)$/.exec(gateway)?.slice(1).map(Number)
  if (!parts) return null
  const [a, b, c, d, prefix] = parts as [number, number, number, number, number]
  const size = 2 ** (32 - prefix)
  const address = ((a * 256 + b) * 256 + c) * 256 + d
  return `${numberToAddress(Math.floor(address / size) * size)}/${prefix}`
}

const madeOnce = (work: Promise<void>) =>
  work.catch((error) => {
    if (isCode(error, 409) || /already (exists|defined|created)/i.test((error as Error).message)) return
    throw unavailable(error)
  })

/** A range that nobody uses any more is free for others: one host cannot route two equal ones. */
export async function dropNetworkIfUnused(
  ctx: IncusContext,
  bridge: string,
  signal: AbortSignal,
): Promise<void> {
  const found = await ctx.client.find<Network>(`/1.0/networks/${bridge}`, { signal })
  if (!found || hasInstances(found.value)) return
  // In use again, or gone: both are as they should be.
  for (const path of [`/1.0/networks/${bridge}`, `/1.0/network-acls/${bridge}`])
    await ctx.client.change('DELETE', path, undefined, { signal, timeoutMs: 30_000 }).catch(() => {})
}

/** Those whose last VM left while Incus could not remove them. */
export async function dropUnusedNetworks(ctx: IncusContext, signal: AbortSignal): Promise<void> {
  for (const { name, config } of await listNetworks(ctx, signal))
    if (config?.['user.slipway.network']) await dropNetworkIfUnused(ctx, name, signal)
}

/** A bridge's forward belongs to the member that has the guest; one of OVN to all. */
const targetOf = async (ctx: IncusContext, network: string, host: string, signal: AbortSignal) =>
  !isOvn(network) && (await memberNames(ctx, signal)) ? { query: { target: host } } : {}

export async function ensureForward(
  ctx: IncusContext,
  bridge: string,
  vm: { id: string; host: string; publicAddress: string; privateAddress: string },
  signal: AbortSignal,
): Promise<void> {
  if (vm.publicAddress === '') return
  const options = { signal, ...(await targetOf(ctx, bridge, vm.host, signal)) }
  const path = `/1.0/networks/${bridge}/forwards`
  const config = { target_address: vm.privateAddress, 'user.slipway.id': vm.id }
  const body = { listen_address: vm.publicAddress, config, ports: [] }
  await ctx.client.change('POST', path, body, options).catch(async (error) => {
    if (!isCode(error, 409) && !/already|overlaps|in use/i.test((error as Error).message))
      throw unavailable(error)
    const own = await ctx.client.find<{ config: Record<string, string> }>(
      `${path}/${vm.publicAddress}`,
      options,
    )
    if (own?.value.config.target_address !== vm.privateAddress)
      throw new EngineError('unavailable', `Incus: ${(error as Error).message}`, { cause: error })
  })
}

export async function removeForward(
  ctx: IncusContext,
  bridge: string,
  vm: { host: string; publicAddress: string },
  signal: AbortSignal,
): Promise<void> {
  if (vm.publicAddress === '' || bridge === '') return
  const options = { signal, ...(await targetOf(ctx, bridge, vm.host, signal)) }
  const path = `/1.0/networks/${bridge}/forwards/${vm.publicAddress}`
  await ctx.client.change('DELETE', path, undefined, options).catch((error) => {
    if (!isCode(error, 404)) throw unavailable(error)
  })
}

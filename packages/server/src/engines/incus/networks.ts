import { createHash } from 'node:crypto'
import { cidrsOverlap, numberToAddress } from '../../domain/addresses.ts'
import type { VmSpec } from '../engine.ts'
import { EngineError } from '../engine.ts'
import { isCode } from './client.ts'
import type { IncusContext } from './context.ts'
import { unavailable } from './instances.ts'
import { memberNames } from './members.ts'

/** One bridge for each subnet of a VPC; an interface's name has at most 15 characters, and the tunnel adds two. */
export function bridgeOf({ networkId, subnetCidr }: VmSpec['network']): string {
  return `sw${createHash('sha256').update(`${networkId} ${subnetCidr}`).digest('hex').slice(0, 11)}`
}

/** Between members the bridge is one segment by VXLAN, whose number comes from its name. */
const vniOf = (bridge: string) => 1 + (Number.parseInt(bridge.slice(2, 8), 16) % 0xfffffe)

/** Makes bridge and firewall of a subnet where they are missing. What no rule allows is dropped from the first moment. */
export async function ensureBridge(
  ctx: IncusContext,
  network: VmSpec['network'],
  signal: AbortSignal,
): Promise<string> {
  const bridge = bridgeOf(network)
  if (await hasBridge(ctx, bridge, signal)) return bridge
  await requireFreeRange(ctx, network.subnetCidr, signal)
  const members = await memberNames(ctx, signal)
  await madeOnce(
    ctx.client.change(
      'POST',
      '/1.0/network-acls',
      { name: bridge, ingress: [], egress: [], config: {} },
      { signal },
    ),
  )
  const vxlan = { protocol: 'vxlan', id: String(vniOf(bridge)), group: '239.27.0.1' }
  const config = {
    'ipv4.address': `${network.gateway}/${network.subnetCidr.split('/')[1]}`,
    'ipv4.nat': 'true',
    'ipv6.address': 'none',
    'dns.mode': 'none',
    'security.acls': bridge,
    'security.acls.default.ingress.action': 'drop',
    'security.acls.default.egress.action': 'drop',
    'user.slipway.network': network.networkId,
    ...(members &&
      Object.fromEntries(Object.entries(vxlan).map(([key, value]) => [`tunnel.v.${key}`, value]))),
  }
  const body = { name: bridge, type: 'bridge' }
  for (const target of members ?? [])
    await madeOnce(ctx.client.change('POST', '/1.0/networks', body, { signal, query: { target } }))
  await madeOnce(
    ctx.client.change('POST', '/1.0/networks', { ...body, config }, { signal, timeoutMs: 60_000 }),
  )
  return bridge
}

export const hasBridge = async (ctx: IncusContext, bridge: string, signal: AbortSignal) =>
  (await ctx.client.find(`/1.0/networks/${bridge}`, { signal })) !== undefined

interface Network {
  name: string
  config: Record<string, string>
  used_by?: string[]
}

const listNetworks = (ctx: IncusContext, signal: AbortSignal) =>
  ctx.client.get<Network[]>('/1.0/networks', { signal, query: { recursion: '1' } })

const hasInstances = ({ used_by = [] }: Pick<Network, 'used_by'>) =>
  used_by.some((path) => path.startsWith('/1.0/instances/'))

/**
 * A bridge is on every member, and no member routes one range to two of them. Placement knows who has which range, but
 * not of networks that others made, nor of a bridge that could not be removed when its last VM left.
 */
async function requireFreeRange(ctx: IncusContext, cidr: string, signal: AbortSignal): Promise<void> {
  const overlapping = async () =>
    (await listNetworks(ctx, signal)).filter(({ config }) => {
      const block = blockOf(config?.['ipv4.address'] ?? '')
      return block !== null && cidrsOverlap(block, cidr)
    })
  const isLeft = (network: Network) =>
    'user.slipway.network' in network.config && network.used_by !== undefined && !hasInstances(network)
  const found = await overlapping()
  for (const { name } of found.filter(isLeft)) await dropBridgeIfUnused(ctx, name, signal)
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
export async function dropBridgeIfUnused(
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
export async function dropUnusedBridges(ctx: IncusContext, signal: AbortSignal): Promise<void> {
  for (const { name, config } of await listNetworks(ctx, signal))
    if (config?.['user.slipway.network']) await dropBridgeIfUnused(ctx, name, signal)
}

/** A forward belongs to the member that has the guest. */
const targetOf = async (ctx: IncusContext, host: string, signal: AbortSignal) =>
  (await memberNames(ctx, signal)) ? { query: { target: host } } : {}

export async function ensureForward(
  ctx: IncusContext,
  bridge: string,
  vm: { id: string; host: string; publicAddress: string; privateAddress: string },
  signal: AbortSignal,
): Promise<void> {
  if (vm.publicAddress === '') return
  const options = { signal, ...(await targetOf(ctx, vm.host, signal)) }
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
  const options = { signal, ...(await targetOf(ctx, vm.host, signal)) }
  const path = `/1.0/networks/${bridge}/forwards/${vm.publicAddress}`
  await ctx.client.change('DELETE', path, undefined, options).catch((error) => {
    if (!isCode(error, 404)) throw unavailable(error)
  })
}

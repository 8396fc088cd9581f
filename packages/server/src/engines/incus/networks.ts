import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { addressCount, parseCidr } from '@slipway/contract'
import { cidrsOverlap, numberToAddress } from '../../domain/addresses.ts'
import { chunksOf } from '../../domain/lists.ts'
import { EngineError, type VmSpec } from '../engine.ts'
import { InOrder } from '../in-order.ts'
import { agentReportOf } from './agent/guest-network.ts'
import { type LocalNetworks, localBridgeOf } from './agent/local-networks.ts'
import { isDuplicate, unavailable } from './client.ts'
import type { IncusContext } from './context.ts'
import { saysForwardTaken } from './error-texts.ts'
import { listMembers, memberNames, targetOptions } from './fleet/members.ts'

const creationMs = 20_000
const pollMs = 200
const membersAtOnce = 16
const pathOf = (network: string) => `/1.0/networks/${network}`

/**
 * Short, because an interface name has at most 15 characters, and Incus appends two to the name of a bridge
 * for its tunnel.
 */
const hashOf = ({ networkId, subnetCidr }: VmSpec['network']) =>
  createHash('sha256').update(`${networkId} ${subnetCidr}`).digest('hex').slice(0, 11)

/** Each subnet of a VPC is one bridge or one OVN network; the prefix of the network's name shows which. */
export const bridgeOf = (network: VmSpec['network']) => `sw${hashOf(network)}`
const ovnNetworkOf = (network: VmSpec['network']) => `so${hashOf(network)}`
export const isOvn = (name: string) => name.startsWith('so')

/** The VXLAN number that connects a bridge's parts on all members, derived from the bridge's name. */
const vniOf = (bridge: string) => 1 + (Number.parseInt(bridge.slice(2, 8), 16) % 0xfffffe)

/**
 * Creates the network and firewall of a subnet if they are missing, and returns the network's name. The
 * network is an OVN network if the cluster has an uplink for OVN, otherwise a bridge. Traffic that no rule
 * allows is dropped from the start. If the members have agents, which create bridges themselves, only the
 * name is returned.
 */
export async function ensureNetwork(
  ctx: IncusContext,
  locals: LocalNetworks,
  creations: InOrder,
  { network, host }: Pick<VmSpec, 'network' | 'host'>,
  signal: AbortSignal,
): Promise<string> {
  if (locals.isInUse(network)) return localBridgeOf(network)
  // A subnet with VMs keeps its type of network.
  const names = [bridgeOf(network), ovnNetworkOf(network)]
  for (const name of names) if (isComplete(await findNetwork(ctx, name, signal))) return name
  return creations.do(bridgeOf(network), async () => {
    for (const name of names) if (await awaitCreation(ctx, name, signal)) return name
    const uplink = await findUplink(ctx, signal)
    if (uplink === undefined && (await hasAgents(ctx, locals, host, signal))) return localBridgeOf(network)
    return createNetwork(ctx, network, uplink, signal)
  })
}

/**
 * Returns whether the host has an agent. Throws if only other members have one, because members with and
 * without an agent cannot share a subnet.
 */
async function hasAgents(
  ctx: IncusContext,
  locals: LocalNetworks,
  host: string,
  signal: AbortSignal,
): Promise<boolean> {
  if (await locals.reports.of(host, signal)) return true
  const { members } = await listMembers(ctx, signal)
  if (!members.some(({ config }) => agentReportOf(config))) return false
  throw new EngineError('unavailable', `${host} has no agent, but other members do: ${agentCommand}`)
}

export const agentCommand = 'run systemctl enable --now slipway-agent on the member (docs/operate/incus.md)'

/** The states of a network that not every member has yet. */
const incomplete = ['Pending', 'Errored']
const isComplete = (network: Network | undefined) =>
  network !== undefined && !incomplete.includes(network.status)

/**
 * Waits until the network is complete, and returns whether it exists. Creating it takes a second or two; if
 * it stays incomplete, a member went down or a worker died in the meantime. No guest can use such a network,
 * so it is removed and can then be created again.
 */
async function awaitCreation(ctx: IncusContext, name: string, signal: AbortSignal): Promise<boolean> {
  const untilMs = performance.now() + creationMs
  do {
    const network = await findNetwork(ctx, name, signal)
    if (!network || isComplete(network)) return network !== undefined
    await sleep(pollMs, undefined, { signal })
  } while (performance.now() < untilMs)
  await dropNetworkIfUnused(ctx, name, signal)
  return false
}

async function createNetwork(
  ctx: IncusContext,
  network: VmSpec['network'],
  uplink: string | undefined,
  signal: AbortSignal,
): Promise<string> {
  const name = uplink === undefined ? bridgeOf(network) : ovnNetworkOf(network)
  if (uplink === undefined) await requireFreeRange(ctx, network.subnetCidr, signal)
  await ctx.client.create('/1.0/network-acls', { name, ingress: [], egress: [], config: {} }, { signal })
  const config = {
    'ipv4.address': `${network.gateway}/${network.subnetCidr.split('/')[1]}`,
    'ipv4.nat': 'true',
    'ipv6.address': 'none',
    'security.acls': name,
    'security.acls.default.ingress.action': 'drop',
    'security.acls.default.egress.action': 'drop',
    'user.slipway.network': network.networkId,
  }
  if (uplink === undefined) await createBridge(ctx, name, config, signal)
  else {
    const body = { name, type: 'ovn', config: { ...config, network: uplink } }
    await ctx.client.create('/1.0/networks', body, { signal, timeoutMs: 60_000 })
  }
  return name
}

/** In a cluster, Incus requires that the bridge is defined on each member before it is created. */
async function createBridge(
  ctx: IncusContext,
  name: string,
  config: Record<string, string>,
  signal: AbortSignal,
): Promise<void> {
  const members = await memberNames(ctx, signal)
  const taken = new Set((await listNetworks(ctx, signal)).map(({ config }) => config?.['tunnel.v.id']))
  let vni = vniOf(name)
  while (taken.has(String(vni))) vni = 1 + (vni % 0xfffffe)
  const vxlan = {
    ...{ 'tunnel.v.protocol': 'vxlan', 'tunnel.v.id': String(vni) },
    'tunnel.v.group': '239.27.0.1',
  }
  const body = { name, type: 'bridge' }
  for (const chunk of chunksOf(members ?? [], membersAtOnce))
    await Promise.all(
      chunk.map((target) => ctx.client.create('/1.0/networks', body, { signal, query: { target } })),
    )
  const whole = { ...body, config: { ...config, 'dns.mode': 'none', ...(members && vxlan) } }
  await ctx.client.create('/1.0/networks', whole, { signal, timeoutMs: 60_000 })
}

const findNetwork = (ctx: IncusContext, name: string, signal: AbortSignal) =>
  ctx.client.find<Network>(pathOf(name), { signal })

export const hasNetwork = async (ctx: IncusContext, name: string, signal: AbortSignal) =>
  (await findNetwork(ctx, name, signal)) !== undefined

/** The network that connects OVN networks to the outside. If an operator has created one, OVN is used. */
export const findUplink = async (ctx: IncusContext, signal: AbortSignal): Promise<string | undefined> =>
  (await listNetworks(ctx, signal)).find(({ config }) => config?.['ipv4.ovn.ranges'])?.name

interface Network {
  name: string
  status: string
  config: Record<string, string>
  used_by?: string[]
}

const listNetworks = async (ctx: IncusContext, signal: AbortSignal) =>
  (await ctx.client.find<Network[]>('/1.0/networks', { signal, query: { recursion: '1' } })) ?? []

const hasInstances = ({ used_by = [] }: Pick<Network, 'used_by'>) =>
  used_by.some((path) => path.startsWith('/1.0/instances/'))

/**
 * Every bridge is on every member, and a member cannot route one range to two bridges. Placement checks the
 * ranges of our networks that have VMs. This function also checks networks of other users of Incus, and
 * bridges that could not be removed with their last VM.
 */
async function requireFreeRange(ctx: IncusContext, cidr: string, signal: AbortSignal): Promise<void> {
  const overlapping = async () =>
    (await listNetworks(ctx, signal)).filter(({ name, config }) => {
      if (isOvn(name)) return false
      const block = blockOf(config?.['ipv4.address'] ?? '')
      return block !== null && cidrsOverlap(block, cidr)
    })
  const isUnused = (network: Network) =>
    'user.slipway.network' in network.config && network.used_by !== undefined && !hasInstances(network)
  const found = await overlapping()
  for (const { name } of found.filter(isUnused)) await dropNetworkIfUnused(ctx, name, signal)
  const [taken] = found.some(isUnused) ? await overlapping() : found
  if (!taken) return
  if (isUnused(taken))
    throw new EngineError(
      'unavailable',
      `the range ${cidr} overlaps with the unused network ${taken.name}, which has not been removed yet`,
    )
  throw new EngineError(
    'rejected',
    `the range ${cidr} overlaps with the network ${taken.name} of this location: use another range`,
  )
}

/** Returns the address block of a gateway, such as 172.27.0.0/20 for 172.27.0.1/20; null for any other text. */
export function blockOf(gateway: string): string | null {
  const [address = '', prefix = ''] = gateway.split('/')
  const base = parseCidr(address)?.base
  if (base === undefined || !/^\d+$/.test(prefix)) return null
  const size = addressCount(Number(prefix))
  return `${numberToAddress(Math.floor(base / size) * size)}/${prefix}`
}

/**
 * Removes a network if it has no VMs. This frees its range, because a host cannot route one range to two
 * networks.
 */
export async function dropNetworkIfUnused(
  ctx: IncusContext,
  name: string,
  signal: AbortSignal,
): Promise<void> {
  const network = await findNetwork(ctx, name, signal)
  if (!network || hasInstances(network)) return
  // A failure means that the network is in use again or already removed; both are fine.
  for (const path of [pathOf(name), `/1.0/network-acls/${name}`])
    await ctx.client.change('DELETE', path, undefined, { signal, timeoutMs: 30_000 }).catch(() => {})
}

/** Removes networks that Incus could not remove with their last VM. */
export async function dropUnusedNetworks(ctx: IncusContext, signal: AbortSignal): Promise<void> {
  for (const { name, config } of await listNetworks(ctx, signal))
    if (config?.['user.slipway.network']) await dropNetworkIfUnused(ctx, name, signal)
}

/**
 * A forward of a bridge belongs to the guest's member; a forward of an OVN network belongs to all members.
 */
const forwardOptions = async (ctx: IncusContext, network: string, host: string, signal: AbortSignal) =>
  isOvn(network) ? { signal } : targetOptions(ctx, host, signal)

const forwardWrites = new InOrder()

/**
 * Incus writes all forwards of a bridge to the kernel with each change, and concurrent changes can omit one
 * of them. Therefore the writes for one bridge of one member run one after another.
 */
const inTurn = <T>(bridge: string, host: string, work: () => Promise<T>) =>
  forwardWrites.do(`${bridge} ${host}`, work)

interface ForwardedVm {
  id: string
  host: string
  publicAddress: string
  privateAddress: string
}

export async function ensureForward(
  ctx: IncusContext,
  bridge: string,
  vm: ForwardedVm,
  signal: AbortSignal,
): Promise<void> {
  if (vm.publicAddress === '') return
  const options = await forwardOptions(ctx, bridge, vm.host, signal)
  const path = `${pathOf(bridge)}/forwards`
  const body = { listen_address: vm.publicAddress, config: forwardConfig(vm), ports: [] }
  await inTurn(bridge, vm.host, () => ctx.client.change('POST', path, body, options)).catch(async (error) => {
    if (!isDuplicate(error) && !saysForwardTaken(error)) throw unavailable(error)
    const known = await ctx.client.find<{ config: Record<string, string> }>(
      `${path}/${vm.publicAddress}`,
      options,
    )
    if (known?.config.target_address !== vm.privateAddress) throw unavailable(error)
  })
}

const forwardConfig = ({ id, privateAddress }: ForwardedVm) => ({
  target_address: privateAddress,
  'user.slipway.id': id,
})

/** Makes Incus write all forwards of the bridge to the kernel again, for a guest that does not respond. */
export async function rewriteForward(
  ctx: IncusContext,
  bridge: string,
  vm: ForwardedVm,
  signal: AbortSignal,
): Promise<void> {
  const options = await forwardOptions(ctx, bridge, vm.host, signal)
  const path = `${pathOf(bridge)}/forwards/${vm.publicAddress}`
  // Incus ignores a change that changes nothing.
  const config = { ...forwardConfig(vm), 'user.slipway.written-at': new Date().toISOString() }
  await inTurn(bridge, vm.host, () => ctx.client.change('PUT', path, { config, ports: [] }, options))
}

/** Removes the forwards of a VM that no longer has an instance, and returns the names of all our networks. */
export async function removeOrphanForwards(
  ctx: IncusContext,
  vm: { id: string; host: string },
  signal: AbortSignal,
): Promise<string[]> {
  const own = (await listNetworks(ctx, signal)).filter(({ config }) => config?.['user.slipway.network'])
  for (const { name } of own) {
    const options = await forwardOptions(ctx, name, vm.host, signal)
    const query = { ...('query' in options ? options.query : {}), recursion: '1' }
    const forwards = await ctx.client.find<{ listen_address: string; config: Record<string, string> }[]>(
      `${pathOf(name)}/forwards`,
      { signal, query },
    )
    for (const { listen_address, config } of forwards ?? [])
      if (config['user.slipway.id'] === vm.id)
        await removeForward(ctx, name, { host: vm.host, publicAddress: listen_address }, signal)
  }
  return own.map(({ name }) => name)
}

/** Removes the forward of an address unless it belongs to another VM, to which the address may have moved. */
export async function removeOwnForward(
  ctx: IncusContext,
  bridge: string,
  vm: { id: string; host: string; publicAddress: string },
  signal: AbortSignal,
): Promise<void> {
  if (vm.publicAddress === '') return
  const options = await forwardOptions(ctx, bridge, vm.host, signal)
  const path = `${pathOf(bridge)}/forwards/${vm.publicAddress}`
  const forward = await ctx.client.find<{ config: Record<string, string> }>(path, options)
  if (forward?.config['user.slipway.id'] === vm.id) await removeForward(ctx, bridge, vm, signal)
}

export async function removeForward(
  ctx: IncusContext,
  bridge: string,
  vm: { host: string; publicAddress: string },
  signal: AbortSignal,
): Promise<void> {
  if (vm.publicAddress === '' || bridge === '') return
  const options = await forwardOptions(ctx, bridge, vm.host, signal)
  const path = `${pathOf(bridge)}/forwards/${vm.publicAddress}`
  await inTurn(bridge, vm.host, () => ctx.client.remove(path, options))
}

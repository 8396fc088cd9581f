import { createHash } from 'node:crypto'
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
  if (await ctx.client.find(`/1.0/networks/${bridge}`, { signal })) return bridge
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
  const found = await ctx.client.find<{ used_by: string[] }>(`/1.0/networks/${bridge}`, { signal })
  if (!found || found.value.used_by.some((path) => path.startsWith('/1.0/instances/'))) return
  // In use again, or gone: both are as they should be.
  for (const path of [`/1.0/networks/${bridge}`, `/1.0/network-acls/${bridge}`])
    await ctx.client.change('DELETE', path, undefined, { signal, timeoutMs: 30_000 }).catch(() => {})
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

import { networkInterfaces } from 'node:os'
import { cidrsOverlap, firstNetworkCidr } from '../../../domain/addresses.ts'
import { agentReportOf } from '../agent/guest-network.ts'
import type { IncusContext } from '../context.ts'
import { filtersInternal } from '../fleet/inventory.ts'
import { listMembers, type Member, type ServerInfo } from '../fleet/members.ts'
import { gpusOf, readResources } from '../fleet/resources.ts'
import { agentCommand, blockOf, isOvn } from '../networks.ts'
import { diskPools } from '../storage/pools.ts'
import { lacksLimits, limitsAdvice } from '../traffic-control.ts'
import { type Finding, ok, problem, warning } from './finding.ts'

const oldestVersion = [6, 0] as const

export function versionFinding({ environment }: ServerInfo): Finding {
  const { server_version } = environment
  const [major = 0, minor = 0] = server_version.split('.').map(Number)
  const isOld = major < oldestVersion[0] || (major === oldestVersion[0] && minor < oldestVersion[1])
  return isOld
    ? problem(
        'version',
        `${server_version} is older than ${oldestVersion.join('.')}`,
        'apt-get install incus',
      )
    : ok('version', server_version)
}

export function guestsFinding(ctx: IncusContext, { environment }: ServerInfo): Finding {
  if (ctx.config.instanceType === 'container')
    return warning(
      'guests',
      'containers, which are for tests: they share the kernel of the host and get no GPUs',
    )
  return /\bqemu\b/.test(environment.driver)
    ? ok('guests', 'virtual machines are supported')
    : problem(
        'guests',
        `virtual machines are not supported here (only ${environment.driver})`,
        'enable virtualization in the firmware, so that /dev/kvm exists',
        'apt-get install incus qemu-system-x86 ovmf; modprobe vhost_vsock; systemctl restart incus',
      )
}

export async function projectFinding(ctx: IncusContext, signal: AbortSignal): Promise<Finding> {
  const { project } = ctx.config
  const path = `/1.0/projects/${project}`
  const found = await ctx.client.find<{ config: Record<string, string> }>(path, { signal })
  if (!found) return problem('project', `project ${project} does not exist`, 'slipway-server incus init')
  const wrong = Object.entries({ 'features.networks': 'false', 'features.images': 'true' }).filter(
    ([key, value]) => found.config[key] !== value,
  )
  return wrong.length === 0
    ? ok('project', project)
    : problem(
        'project',
        `project ${project} does not have the features that Slipway needs`,
        ...wrong.map(([key, value]) => `incus project set ${project} ${key}=${value}`),
      )
}

export async function storageFindings(
  ctx: IncusContext,
  info: ServerInfo,
  isShared: boolean,
  signal: AbortSignal,
): Promise<Finding[]> {
  const pools = [...new Set([ctx.config.storagePool, ...diskPools(ctx.config)])]
  return Promise.all(pools.map((pool) => storageFinding(ctx, info, pool, isShared, signal)))
}

async function storageFinding(
  ctx: IncusContext,
  { environment }: ServerInfo,
  name: string,
  isShared: boolean,
  signal: AbortSignal,
): Promise<Finding> {
  const path = `/1.0/storage-pools/${name}`
  const found = await ctx.client.find<{ driver: string; status: string }>(path, { signal })
  if (!found)
    return problem(
      'storage pool',
      `pool ${name} does not exist`,
      name === ctx.config.storagePool ? 'slipway-server incus init' : `incus storage create ${name} DRIVER`,
    )
  const { driver, status } = found
  if (status !== 'Created')
    return problem('storage pool', `${name} is ${status}`, `incus storage info ${name}`)
  const isRemote = environment.storage_supported_drivers?.some((one) => one.Name === driver && one.Remote)
  if (environment.server_clustered && isShared && !isRemote)
    return problem(
      'storage pool',
      `${name} (${driver}) is local to each member, but the location has storage = "shared"`,
      'set storage = "local" in its [[location]], or use a ceph or lvmcluster pool',
    )
  return driver === 'dir'
    ? warning(
        'storage pool',
        `${name} (dir) copies the image for every VM`,
        'use btrfs, zfs, lvm or ceph in production',
      )
    : ok('storage pool', `${name} (${driver})`)
}

export function networkFinding(
  { environment }: ServerInfo,
  publicIpv4: string,
  uplink: string | undefined,
): Finding {
  if (uplink !== undefined)
    return ok('network', `OVN with the uplink ${uplink}; public addresses from ${publicIpv4 || 'no block'}`)
  if (environment.firewall !== 'nftables')
    return problem(
      'network',
      `the firewall is ${environment.firewall}`,
      'apt-get install nftables; systemctl restart incus',
    )
  return publicIpv4 === ''
    ? warning(
        'network',
        'VMs get no public address',
        'set public_ipv4 to a block that is routed to the members',
      )
    : ok(
        'network',
        `a bridge for each subnet, so networks cannot overlap; public addresses from ${publicIpv4}`,
      )
}

export interface Network {
  name: string
  managed: boolean
  config: Record<string, string>
}

/**
 * Every bridge is on every member, and a host cannot route one range to two bridges. So if two networks
 * overlap, VMs of the second one cannot be placed.
 */
export function overlapFinding(networks: Network[], own: { name: string; cidr: string }[]): Finding {
  // An OVN network has its own router, so it may overlap with others.
  const managed = networks.flatMap(({ name, config }) => {
    const cidr = isOvn(name) ? '' : (config['ipv4.address'] ?? '')
    return withBlock({ name, cidr, isOurs: 'user.slipway.network' in config })
  })
  const others = own.filter(({ name }) => !managed.some((network) => network.name === name))
  const ranges = [...managed, ...others.flatMap((range) => withBlock({ ...range, isOurs: false }))]
  const name = 'the first network of every project'
  const first = withBlock({ name, cidr: firstNetworkCidr, isOurs: true })
  const pairs = ranges.flatMap((range, index) =>
    [...ranges.slice(0, index), ...(range.isOurs ? [] : first)]
      .filter((other) => (range.isOurs || other.isOurs) && cidrsOverlap(range.block, other.block))
      .map((other) => `${range.name} (${range.cidr}) and ${other.name} (${other.cidr})`),
  )
  return pairs.length === 0
    ? ok('overlapping networks', 'none')
    : warning(
        'overlapping networks',
        pairs.join('; '),
        'VMs of one network cannot be placed while the other network has VMs: change one of the ranges, or use another location',
      )
}

function withBlock<Range extends { cidr: string }>(range: Range): (Range & { block: string })[] {
  const block = blockOf(range.cidr)
  return block === null ? [] : [{ ...range, block }]
}

export const ownRanges = () =>
  Object.entries(networkInterfaces()).flatMap(([name, addresses = []]) =>
    addresses
      .filter(({ family, internal }) => family === 'IPv4' && !internal)
      .map(({ cidr }) => ({ name, cidr: cidr! })),
  )

export async function imageFinding(ctx: IncusContext, signal: AbortSignal): Promise<Finding> {
  const { project, instanceType } = ctx.config
  const query = { project, recursion: '1' }
  type Image = { type: string; aliases: { name: string }[] }
  const images = await ctx.client.get<Image[]>('/1.0/images', { signal, query })
  const names = images
    .filter(({ type }) => type === instanceType)
    .flatMap(({ aliases }) => aliases.map(({ name }) => name))
  return names.length > 0
    ? ok('images', names.join(', '))
    : problem(
        'images',
        `project ${project} has no ${instanceType} image with an alias`,
        'slipway-server images import FILE --sha256 HEX --format qcow2',
      )
}

export async function memberFindings(
  ctx: IncusContext,
  hasOvn: boolean,
  signal: AbortSignal,
): Promise<Finding[]> {
  const { members, isCluster } = await listMembers(ctx, signal)
  const hasAgents = members.some(({ config }) => agentReportOf(config))
  const facts = { isCluster, hasOvn, hasAgents }
  const found = await Promise.all(members.map((member) => memberFinding(ctx, member, facts, signal)))
  if (!isCluster || hasOvn || hasAgents) return found
  const text = 'none: while a member is down, no VM of the location can be created and no rule can be changed'
  return [warning('agents', text, agentCommand), ...found]
}

async function memberFinding(
  ctx: IncusContext,
  member: Member,
  { isCluster, hasOvn, hasAgents }: { isCluster: boolean; hasOvn: boolean; hasAgents: boolean },
  signal: AbortSignal,
): Promise<Finding> {
  const step = `member ${member.name}`
  if (member.status !== 'Online')
    return problem(
      step,
      `is ${member.status}: ${member.message}`,
      'run systemctl status incus on this member, and incus cluster list',
    )
  if (hasAgents && !hasOvn && !agentReportOf(member.config))
    return problem(step, 'accepts no VMs: this member has no agent, but other members have one', agentCommand)
  if (lacksLimits(ctx, member, hasOvn))
    return problem(step, 'accepts no VMs: its kernel cannot limit their bandwidth', limitsAdvice)
  const isFiltering = hasOvn || filtersInternal(member)
  if (!isFiltering && !ctx.config.allowUnfilteredInternal)
    return problem(
      step,
      'accepts no VMs: filtering between guests of one bridge is not confirmed',
      'run slipway-server incus init (or join) on this member, or set allow_unfiltered_internal = true in [location.incus]',
    )
  const filters = isFiltering ? 'filters between guests' : 'does not filter between guests'
  if (ctx.config.instanceType === 'container') return ok(step, filters)
  const gpus = gpusOf(await readResources(ctx, isCluster ? member.name : null, signal))
  const known = gpus.filter(({ model }) => !model.startsWith('PCI '))
  return known.length === 0
    ? problem(
        step,
        'has no GPU that is in the catalogue',
        'run slipway-server doctor --engine incus on this member',
      )
    : ok(step, `${filters}, ${known.length} GPUs`)
}

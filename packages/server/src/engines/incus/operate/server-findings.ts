import { networkInterfaces } from 'node:os'
import { cidrsOverlap, firstNetworkCidr } from '../../../domain/addresses.ts'
import type { IncusContext } from '../context.ts'
import { filtersInternal } from '../inventory.ts'
import { listMembers, type Member } from '../members.ts'
import { isOvn } from '../networks.ts'
import { gpusOf, readResources } from '../resources.ts'
import { type Finding, missing, ok, warning } from './finding.ts'
import type { ServerInfo } from './operator.ts'

const oldestVersion = [6, 0] as const

export function versionFinding({ environment }: ServerInfo): Finding {
  const { server_version } = environment
  const [major = 0, minor = 0] = server_version.split('.').map(Number)
  const isOld = major < oldestVersion[0] || (major === oldestVersion[0] && minor < oldestVersion[1])
  return isOld
    ? missing(
        'version',
        `${server_version} is older than ${oldestVersion.join('.')}`,
        'apt-get install incus',
      )
    : ok('version', server_version)
}

export function guestsFinding(ctx: IncusContext, { environment }: ServerInfo): Finding {
  if (ctx.config.instanceType === 'container')
    return warning('guests', 'are containers, for tests: they share the kernel of the host and get no GPUs')
  return /\bqemu\b/.test(environment.driver)
    ? ok('guests', 'virtual machines can be run')
    : missing(
        'guests',
        `no virtual machine can be run here (${environment.driver} only)`,
        'switch virtualisation on in the firmware, so that /dev/kvm is there',
        'apt-get install incus qemu-system-x86 ovmf; modprobe vhost_vsock; systemctl restart incus',
      )
}

export async function projectFinding(ctx: IncusContext, signal: AbortSignal): Promise<Finding> {
  const { project } = ctx.config
  const found = await ctx.client.find<{ config: Record<string, string> }>(`/1.0/projects/${project}`, {
    signal,
  })
  if (!found) return missing('project', `there is no project ${project}`, 'slipway-server incus init')
  const wrong = Object.entries({ 'features.networks': 'false', 'features.images': 'true' }).filter(
    ([key, value]) => found.value.config[key] !== value,
  )
  return wrong.length === 0
    ? ok('project', project)
    : missing(
        'project',
        `${project} has other features than Slipway needs`,
        ...wrong.map(([key, value]) => `incus project set ${project} ${key}=${value}`),
      )
}

export async function storageFinding(
  ctx: IncusContext,
  { environment }: ServerInfo,
  isShared: boolean,
  signal: AbortSignal,
): Promise<Finding> {
  const { storagePool: name } = ctx.config
  const path = `/1.0/storage-pools/${name}`
  const found = await ctx.client.find<{ driver: string; status: string }>(path, { signal })
  if (!found) return missing('storage pool', `there is no pool ${name}`, 'slipway-server incus init')
  const { driver, status } = found.value
  if (status !== 'Created')
    return missing('storage pool', `${name} is ${status}`, `incus storage info ${name}`)
  const isRemote = environment.storage_supported_drivers.some((one) => one.Name === driver && one.Remote)
  if (environment.server_clustered && isShared && !isRemote)
    return missing(
      'storage pool',
      `${name} (${driver}) is local to each member, and the location says storage = "shared"`,
      'set storage = "local" in its [[location]], or use a pool of ceph or lvmcluster',
    )
  return driver === 'dir'
    ? warning(
        'storage pool',
        `${name} (dir) copies the image for every VM`,
        'use btrfs, zfs, lvm or ceph for more than a trial',
      )
    : ok('storage pool', `${name} (${driver})`)
}

export function networkFinding(
  { environment }: ServerInfo,
  publicIpv4: string,
  uplink: string | undefined,
): Finding {
  if (uplink !== undefined)
    return ok('network', `OVN by the uplink ${uplink}, and public addresses of ${publicIpv4 || 'nowhere'}`)
  if (environment.firewall !== 'nftables')
    return missing(
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
        `a bridge for each subnet, each range for one network at a time, and public addresses of ${publicIpv4}`,
      )
}

export interface Network {
  name: string
  managed: boolean
  config: Record<string, string>
}

/** A bridge is on every member, and no host routes one range to two of them: VMs of the second do not fit. */
export function overlapFinding(networks: Network[], own: { name: string; cidr: string }[]): Finding {
  // A network of OVN has a router of its own.
  const managed = networks.flatMap(({ name, config }) => {
    const cidr = isOvn(name) ? undefined : config['ipv4.address']
    return cidr?.includes('/') ? [{ name, cidr, isOurs: 'user.slipway.network' in config }] : []
  })
  const others = own.filter(({ name }) => !managed.some((network) => network.name === name))
  const ranges = [...managed, ...others.map((range) => ({ ...range, isOurs: false }))]
  const first = { name: 'the first network of every project', cidr: firstNetworkCidr, isOurs: true }
  const pairs = ranges.flatMap((range, index) =>
    [...ranges.slice(0, index), ...(range.isOurs ? [] : [first])]
      .filter(
        (other) => (range.isOurs || other.isOurs) && cidrsOverlap(blockOf(range.cidr), blockOf(other.cidr)),
      )
      .map((other) => `${range.name} (${range.cidr}) and ${other.name} (${other.cidr})`),
  )
  return pairs.length === 0
    ? ok('overlapping networks', 'none')
    : warning(
        'overlapping networks',
        pairs.join('; '),
        'VMs of the one do not fit while there are VMs of the other: give it another range, or use another location',
      )
}

/** Of an address with its prefix: the block that it is in. */
function blockOf(cidr: string): string {
  const [address = '', prefix = '32'] = cidr.split('/')
  const bits = address.split('.').reduce((sum, part) => sum * 256 + Number(part), 0)
  const size = 2 ** (32 - Number(prefix))
  const begin = Math.floor(bits / size) * size
  return `${[24, 16, 8, 0].map((shift) => Math.floor(begin / 2 ** shift) % 256).join('.')}/${prefix}`
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
  const images = await ctx.client.get<{ type: string; aliases: { name: string }[] }[]>('/1.0/images', {
    ...{ signal, query },
  })
  const names = images
    .filter(({ type }) => type === instanceType)
    .flatMap(({ aliases }) => aliases.map(({ name }) => name))
  return names.length > 0
    ? ok('images', names.join(', '))
    : missing(
        'images',
        `project ${project} has no image of a ${instanceType} with an alias`,
        'slipway-server images import FILE --sha256 HEX',
      )
}

export async function memberFindings(
  ctx: IncusContext,
  hasOvn: boolean,
  signal: AbortSignal,
): Promise<Finding[]> {
  const { members, isCluster } = await listMembers(ctx, signal)
  return Promise.all(members.map((member) => memberFinding(ctx, member, isCluster, hasOvn, signal)))
}

async function memberFinding(
  ctx: IncusContext,
  member: Member,
  isCluster: boolean,
  hasOvn: boolean,
  signal: AbortSignal,
): Promise<Finding> {
  const step = `member ${member.name}`
  if (member.status !== 'Online')
    return missing(
      step,
      `is ${member.status}: ${member.message}`,
      'systemctl status incus on it; incus cluster list',
    )
  const isFiltering = hasOvn || filtersInternal(member)
  if (!isFiltering && !ctx.config.allowUnfilteredInternal)
    return missing(
      step,
      'takes no VMs: nobody proved that it filters between guests of one bridge',
      'slipway-server incus init (or join) on it; or allow_unfiltered_internal = true in [location.incus]',
    )
  const filters = isFiltering ? 'filters between guests' : 'does not filter between guests'
  if (ctx.config.instanceType === 'container') return ok(step, filters)
  const gpus = gpusOf(await readResources(ctx, isCluster ? member.name : null, signal))
  const known = gpus.filter(({ model }) => !model.startsWith('PCI '))
  return known.length === 0
    ? missing(step, 'has no GPU of the catalogue', 'run slipway-server doctor --engine incus on it')
    : ok(step, `${filters}, ${known.length} GPUs`)
}

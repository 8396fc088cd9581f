import { hostnameOf, userData, yamlOf } from '../cloud-init.ts'
import type { AttachedDisk, VmSpec } from '../engine.ts'
import { isLocalBridge } from './agent/local-networks.ts'
import { isVxlanReservation } from './agent/vxlan-numbers.ts'
import type { IncusContext } from './context.ts'
import { type Change, type Goal, gate, type Instance, marks, nextStart, volumeName } from './instances.ts'
import { isOvn } from './networks.ts'
import type { DiskPools } from './storage/pools.ts'

type Device = Record<string, string>

/** The VM's subnet, stored in the instance for calls that have only the VM's id. */
export const subnetMark = 'user.slipway.subnet'

const userDataKey = 'cloud-init.user-data'

export interface Definition {
  profiles: string[]
  config: Record<string, string>
  devices: Record<string, Device>
}

/**
 * Returns the definition of the instance for a spec. If the goal is `on`, it has the GPUs. Otherwise it has no GPUs
 * and has the device `gate`, which prevents a start: the gate is closed.
 */
export function definitionOf(
  ctx: IncusContext,
  spec: VmSpec,
  bridge: string,
  goal: Goal,
  numaNodes: number[],
  pools: DiskPools,
): Definition {
  const { instanceType, storagePool, profiles } = ctx.config
  const isVm = instanceType === 'virtual-machine'
  const isOpen = goal === 'on'
  const { network } = spec
  return {
    profiles,
    config: {
      [marks.id]: spec.id,
      [marks.goal]: goal,
      [marks.bridge]: bridge,
      [marks.publicAddress]: network.publicAddress,
      [marks.gpus]: isOpen ? spec.gpus.map(({ pciAddress }) => pciAddress).join(' ') : '',
      [marks.disks]: spec.disks.map(({ id }) => id).join(' '),
      [subnetMark]: network.subnetCidr,
      'user.slipway.name': spec.name,
      'user.slipway.project': spec.projectId,
      'limits.cpu': String(spec.cpuCores),
      'limits.memory': `${spec.memoryGb}GiB`,
      // An empty value removes an earlier pinning.
      ...(isVm && { 'limits.cpu.nodes': numaNodes.join(','), 'security.secureboot': 'false' }),
      [userDataKey]: userData(spec),
      // The user data contains the private host key until the guest has it.
      [marks.laterUserData]: spec.sshHostKey?.privateKey ? userData(withoutPrivateKey(spec)) : '',
      // The GPUs are in one cluster member, so the instance cannot move to another one.
      'cluster.evacuate': 'stop',
      // Without this, Incus would name the guest after the instance.
      'cloud-init.vendor-data': yamlOf({ hostname: hostnameOf(spec) }),
    },
    devices: {
      root: {
        ...{ type: 'disk', path: '/', pool: storagePool, size: `${spec.osDiskGib}GiB` },
        ...(isVm && diskLimits(spec.osDiskMbps)),
      },
      eth0: {
        ...{ type: 'nic', name: 'eth0', hwaddr: network.macAddress.toLowerCase() },
        ...(isLocalBridge(bridge) ? { nictype: 'bridged', parent: bridge } : { network: bridge }),
        'ipv4.address': network.privateAddress,
        // Incus 6.0 cannot limit interfaces of OVN networks.
        ...(ctx.config.networkLimits && !isOvn(bridge) && networkLimits(network.gbps)),
        // Incus cannot filter addresses in OVN networks; the host report lists this as not enforced.
        ...(!isOvn(bridge) && { 'security.ipv4_filtering': 'true', 'security.mac_filtering': 'true' }),
      },
      // Provides the user data to a guest without Incus's agent.
      ...(isVm && { seed: { type: 'disk', source: 'cloud-init:config' } }),
      ...Object.assign({}, ...spec.disks.map((disk) => diskDevice(ctx, disk, pools.get(disk.id)!))),
      ...(isOpen ? gpuDevices(ctx, spec) : gate),
    },
  }
}

function withoutPrivateKey(spec: VmSpec): VmSpec {
  return { ...spec, sshHostKey: spec.sshHostKey && { ...spec.sshHostKey, privateKey: '' } }
}

/** Returns the change that removes an instance's secrets after the first boot; null if there are none. */
export function withoutSecrets({ config }: Instance): Change | null {
  const later = config[marks.laterUserData]
  return later ? { config: { [userDataKey]: later, [marks.laterUserData]: '' } } : null
}

/** Containers, which are only for tests, get no GPU devices; their GPUs are listed in the marks. */
function gpuDevices(ctx: IncusContext, spec: VmSpec): Record<string, Device> {
  if (ctx.config.instanceType === 'container') return {}
  return Object.fromEntries(
    spec.gpus.map(({ pciAddress }, index) => [
      `gpu${index}`,
      { type: 'gpu', gputype: 'physical', pci: pciAddress },
    ]),
  )
}

/**
 * The device is named after its serial number, because the guest sees `incus_` followed by the name. Longer
 * names would be truncated or replaced.
 */
export function diskDevice(ctx: IncusContext, disk: AttachedDisk, pool: string): Record<string, Device> {
  const isFilesystem = ctx.config.instanceType === 'container' || disk.type === 'shared-volume'
  return {
    [disk.serialNumber]: {
      ...{ type: 'disk', pool, source: volumeName(disk.id) },
      ...(isFilesystem && { path: `/mnt/${disk.serialNumber}` }),
      ...(disk.mode === 'read-only' && { readonly: 'true' }),
      ...(!isFilesystem && diskLimits(disk.mbps)),
    },
  }
}

/** Incus can limit only the block devices of VMs, because file systems have no separate device. */
const diskLimits = (mbps: number | null | undefined): Device =>
  mbps ? { 'limits.read': `${mbps}MB`, 'limits.write': `${mbps}MB` } : {}

const networkLimits = (gbps: number | undefined): Device =>
  gbps ? { 'limits.ingress': megabits(gbps), 'limits.egress': megabits(gbps) } : {}
const megabits = (gbps: number) => `${Math.round(gbps * 1000)}Mbit`

/**
 * Returns the change that replaces the definition, and removes devices that the new definition does not have.
 * If the definition opens the gate, the change also raises the counter of starts, because a start follows.
 */
export function redefinition(instance: Instance, definition: Definition): Change {
  const removed = Object.keys(instance.devices).filter((name) => !(name in definition.devices))
  const isOpen = definition.config[marks.goal] === 'on'
  return {
    ...definition,
    profiles: [...definition.profiles, ...instance.profiles.filter(isVxlanReservation)],
    config: { ...definition.config, ...(isOpen && nextStart(instance)) },
    devices: { ...definition.devices, ...Object.fromEntries(removed.map((name) => [name, null])) },
  }
}

/** Returns the change that closes the gate and releases the GPUs. */
export function closingChange(instance: Instance) {
  const gpus = Object.keys(instance.devices).filter((name) => /^gpu\d+$/.test(name))
  return {
    config: { [marks.goal]: 'shut', [marks.gpus]: '' },
    devices: { ...gate, ...Object.fromEntries(gpus.map((name) => [name, null])) },
  }
}

import Type, { type Static } from 'typebox'
import { hostNamePattern } from '../names.ts'
import { defineRoutes } from '../route.ts'
import { body, Empty, pagedList, pageQuery, record, Timestamp, Uuid, wholeList } from '../schema.ts'
import { gpuStates, hostStates, vmStates } from '../states.ts'

/** Hosts, their GPUs, and what is left of them. */

export const Gpu = record('Gpu', {
  id: Uuid,
  model: Type.String(),
  pci_address: Type.String({ examples: ['0000:41:00.0'] }),
  numa_node: Type.Integer(),
  state: Type.Enum([...gpuStates]),
  vm_id: Type.String({ description: 'Empty when no VM holds it.' }),
})
export type Gpu = Static<typeof Gpu>

export const HostVm = record('HostVm', {
  id: Uuid,
  name: Type.String(),
  state: Type.Enum([...vmStates]),
  project_id: Uuid,
  project_name: Type.String(),
  organization_name: Type.String(),
})
export type HostVm = Static<typeof HostVm>

export const Host = record('Host', {
  id: Uuid,
  name: Type.String(),
  location: Type.String(),
  engine: Type.Enum(['simulated', 'qemu', 'incus']),
  schedulable: Type.Boolean(),
  state: Type.Enum([...hostStates]),
  last_report_at: Timestamp,
  forgotten_at: Timestamp,
  draining_since: Type.String({
    ...Timestamp,
    description:
      'When the drain that is under way was asked for; empty when none is, or it is older than the events.',
  }),
  vms_at_drain: Type.Integer({
    description: 'How many VMs lived on it when the drain that is under way began; 0 when that is not known.',
  }),
  capabilities: Type.Record(Type.String(), Type.Unknown()),
  gpus: Type.Array(Gpu),
  vms: Type.Array(HostVm, { description: 'The VMs that live on it: it is drained when there are none.' }),
})
export type Host = Static<typeof Host>

export const AdminLocation = record('AdminLocation', {
  name: Type.String(),
  region: Type.String(),
  zone: Type.String(),
  description: Type.String(),
  engine: Type.Enum(['simulated', 'qemu', 'incus']),
  storage: Type.Enum(['shared', 'local']),
  public_ipv4: Type.String(),
})

export const FamilyCapacity = record('FamilyCapacity', {
  location: Type.String(),
  family: Type.String(),
  total: Type.Integer(),
  free: Type.Integer(),
  claimed: Type.Integer(),
  quarantined: Type.Integer(),
  largest_type: Type.String({ description: 'The largest type that still fits; empty when none does.' }),
})

export const adminFleetRoutes = defineRoutes({
  adminHostList: {
    method: 'GET',
    path: '/v0.1/admin/hosts',
    tag: 'Operators',
    summary: 'List hosts with their GPUs',
    access: 'operator',
    query: Type.Object({
      ...pageQuery,
      location: Type.Optional(Type.String({ maxLength: 100 })),
      state: Type.Optional(Type.Enum([...hostStates])),
    }),
    answer: pagedList('HostList', Host),
  },
  adminHostCreate: {
    method: 'POST',
    path: '/v0.1/admin/hosts',
    tag: 'Operators',
    summary: 'Register a host',
    description:
      'Its GPUs appear with its first report. In a simulated location `gpus` describes the host to simulate.',
    access: 'operator',
    body: body('HostCreate', {
      name: Type.String({ format: 'host-name', pattern: hostNamePattern }),
      location: Type.String({ minLength: 1, maxLength: 100 }),
      gpus: Type.Optional(
        Type.Object(
          {
            model: Type.String({ minLength: 1, maxLength: 100 }),
            count: Type.Integer({ minimum: 1, maximum: 16 }),
          },
          { additionalProperties: false },
        ),
      ),
    }),
    answer: Host,
    errors: ['already_exists'],
  },
  adminHostGet: {
    method: 'GET',
    path: '/v0.1/admin/hosts/{host_id}',
    tag: 'Operators',
    summary: 'Read a host',
    access: 'operator',
    answer: Host,
  },
  adminHostUpdate: {
    method: 'PATCH',
    path: '/v0.1/admin/hosts/{host_id}',
    tag: 'Operators',
    summary: 'Open or close a host for new VMs',
    access: 'operator',
    body: body('HostUpdate', { schedulable: Type.Boolean() }),
    answer: Host,
  },
  adminHostDrain: {
    method: 'POST',
    path: '/v0.1/admin/hosts/{host_id}/drain',
    tag: 'Operators',
    summary: 'Drain a host',
    description:
      'Stops placing new VMs and notifies the tenants by an event; `drained` when the last VM has left. Never stops a VM.',
    access: 'operator',
    answer: Host,
    errors: ['conflict'],
  },
  adminHostForget: {
    method: 'POST',
    path: '/v0.1/admin/hosts/{host_id}/forget',
    tag: 'Operators',
    summary: 'Declare a host lost for good',
    isDestructive: true,
    description:
      'Only one that is down. Its VMs are without OS disk from then on, disks that live on it are deleted, its GPUs are `gone`, VMs that were deleted while it was away let go of disks and addresses, and its reports are refused until it is registered anew.',
    access: 'operator',
    answer: Host,
    errors: ['conflict'],
  },
  adminHostDelete: {
    method: 'DELETE',
    path: '/v0.1/admin/hosts/{host_id}',
    tag: 'Operators',
    summary: 'Remove an empty host',
    access: 'operator',
    answer: Empty,
    errors: ['conflict'],
  },
  adminGpuUpdate: {
    method: 'PATCH',
    path: '/v0.1/admin/gpus/{gpu_id}',
    tag: 'Operators',
    summary: 'Quarantine or free a GPU',
    access: 'operator',
    body: body('GpuUpdate', { state: Type.Enum(['free', 'quarantined']) }),
    answer: Gpu,
    errors: ['conflict'],
  },
  adminLocationList: {
    method: 'GET',
    path: '/v0.1/admin/locations',
    tag: 'Operators',
    summary: 'List locations',
    access: 'operator',
    answer: wholeList('AdminLocationList', AdminLocation),
  },
  adminCapacityList: {
    method: 'GET',
    path: '/v0.1/admin/capacity',
    tag: 'Operators',
    summary: 'GPUs by location and family',
    access: 'operator',
    answer: wholeList('FamilyCapacityList', FamilyCapacity),
  },
})

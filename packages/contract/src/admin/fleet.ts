import Type, { type Static } from 'typebox'
import { faultSources } from '../instances/health.ts'
import { hostNamePattern } from '../names.ts'
import { defineRoutes } from '../route.ts'
import {
  body,
  Empty,
  Instant,
  PlainText,
  pagedList,
  pageQuery,
  record,
  Timestamp,
  UtcDate,
  Uuid,
  wholeList,
} from '../schema.ts'
import { gpuStates, hostStates, vmStates } from '../states.ts'

/** Operator routes for hosts, GPUs, locations and capacity. */

export const Gpu = record('Gpu', {
  id: Uuid,
  model: Type.String(),
  pci_address: Type.String({ examples: ['0000:41:00.0'] }),
  numa_node: Type.Integer(),
  state: Type.Enum([...gpuStates]),
  vm_id: Type.String({ description: 'Empty if no VM uses the GPU.' }),
  held_for: Type.String({
    description:
      'The capacity request, reservation or operation that the GPU is held for. Empty if it is not held.',
  }),
  suspect: Type.Boolean({
    description:
      'Whether a fault was reported. A suspect GPU returns to stock only after it passes a check, or when an operator frees it.',
  }),
  fault_count: Type.Integer({ description: 'How many faults were recorded for the GPU.' }),
  last_fault: record('GpuLastFault', {
    at: Type.String({
      ...Timestamp,
      description:
        'Empty if no fault was recorded. The last fault can be an application error, which does not make the GPU suspect.',
    }),
    xid: Type.Integer({
      description: 'The XID error that the driver reported; 0 if the GPU was lost without one.',
    }),
    source: Type.Enum(['', ...faultSources], { description: 'Who reported the fault.' }),
  }),
  last_check: record('GpuCheck', {
    at: Type.String({ ...Timestamp, description: 'Empty if the GPU was never checked.' }),
    passed: Type.Boolean(),
    reasons: Type.Array(Type.String(), { description: 'The reasons why the check failed, and warnings.' }),
  }),
})
export type Gpu = Static<typeof Gpu>

export const GpuFault = record('GpuFault', {
  at: Timestamp,
  xid: Type.Integer({
    description: 'The XID error that the driver reported; 0 if the GPU was lost without one.',
  }),
  source: Type.Enum([...faultSources], {
    description: 'A fault that a guest reports may be false. A fault that the host detects is trusted.',
  }),
  vm_id: Type.String({ description: 'The VM that had the GPU. Empty if there was none.' }),
})
export type GpuFault = Static<typeof GpuFault>

/** How fault counts can be grouped. */
export const faultGroupings = ['model', 'host', 'xid'] as const
export type FaultGrouping = (typeof faultGroupings)[number]
/** The longest period for which faults are counted, in days. */
export const maxFaultDays = 90
/** How many groups are listed separately. All others are combined, so that the list stays short in a large fleet. */
export const maxFaultGroups = 20

export const GpuFaultDay = record('GpuFaultDay', {
  date: Type.String({ ...UtcDate, description: 'The UTC day.' }),
  group: Type.String({
    description: `The model, the name of the host, or the XID. Empty for the sum of all groups except the ${maxFaultGroups} with the most faults.`,
    examples: ['A100 80GB PCIe'],
  }),
  host_id: Type.String({ description: 'With `group_by=host`: the host. Otherwise empty.' }),
  location: Type.String({ description: 'With `group_by=host`: the location of the host. Otherwise empty.' }),
  host_faults: Type.Integer({ description: 'Faults that hosts detected.' }),
  guest_faults: Type.Integer({ description: 'Faults that guests reported. They may be false.' }),
  other_errors: Type.Integer({
    description:
      'XID errors that do not indicate a hardware problem: application errors, informational messages and unknown XIDs.',
  }),
})
export type GpuFaultDay = Static<typeof GpuFaultDay>

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
      'When the current drain was requested. Empty if no drain is in progress, or if the event of the drain is older than the retention period.',
  }),
  vms_at_drain: Type.Integer({
    description: 'How many VMs were on the host when the current drain began; 0 if unknown.',
  }),
  note: Type.String({ description: 'A note for operators. Tenants do not see it.' }),
  note_at: Type.String({
    ...Timestamp,
    description: 'When the note was last changed. Empty if there is no note.',
  }),
  note_by: Type.String({
    description: 'Who last changed the note, as in `actor` of events. Empty if there is no note.',
  }),
  maintenance_at: Type.String({
    ...Timestamp,
    description: 'When the announced maintenance begins. Empty if none is announced.',
  }),
  maintenance_note: Type.String({ description: 'The maintenance note that tenants see.' }),
  capabilities: Type.Record(Type.String(), Type.Unknown()),
  gpus: Type.Array(Gpu),
  vms: Type.Array(HostVm, {
    description: 'The VMs on the host. A draining host becomes `drained` when it has none left.',
  }),
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
  engine_problem: Type.String({
    description: 'Why the engine of the location cannot be read; empty if it responds.',
  }),
})

export const FamilyCapacity = record('FamilyCapacity', {
  location: Type.String(),
  family: Type.String(),
  total: Type.Integer(),
  free: Type.Integer({ description: 'Free GPUs on hosts that are up and schedulable.' }),
  unavailable: Type.Integer({
    description: 'Unused GPUs on hosts that are down, cordoned, draining or drained.',
  }),
  claimed: Type.Integer(),
  quarantined: Type.Integer(),
  held: Type.Integer({
    description: 'GPUs that are held for capacity requests, reservations and operations.',
  }),
  largest_type: Type.String({ description: 'The largest type that still fits. Empty if none fits.' }),
})

export const adminFleetRoutes = defineRoutes({
  adminHostList: {
    method: 'GET',
    path: '/v0.1/admin/hosts',
    tag: 'Operators',
    summary: 'List hosts with their GPUs',
    access: 'operator',
    isInventory: true,
    query: Type.Object({
      ...pageQuery,
      location: Type.Optional(Type.String({ maxLength: 100 })),
      state: Type.Optional(Type.Enum([...hostStates])),
    }),
    response: pagedList('HostList', Host),
  },
  adminHostCreate: {
    method: 'POST',
    path: '/v0.1/admin/hosts',
    tag: 'Operators',
    summary: 'Register a host',
    description:
      'The GPUs appear with the host’s first report. In a simulated location, `gpus` describes the host to simulate.',
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
    response: Host,
    errors: ['already_exists'],
  },
  adminHostGet: {
    method: 'GET',
    path: '/v0.1/admin/hosts/{host_id}',
    tag: 'Operators',
    summary: 'Read a host',
    access: 'operator',
    isInventory: true,
    response: Host,
  },
  adminHostUpdate: {
    method: 'PATCH',
    path: '/v0.1/admin/hosts/{host_id}',
    tag: 'Operators',
    summary: 'Cordon or uncordon a host, or change its note',
    access: 'operator',
    body: body('HostUpdate', {
      schedulable: Type.Optional(Type.Boolean()),
      note: Type.Optional(PlainText({ maxLength: 500, examples: ['The fan in slot 3 is loud'] })),
    }),
    response: Host,
  },
  adminHostDrain: {
    method: 'POST',
    path: '/v0.1/admin/hosts/{host_id}/drain',
    tag: 'Operators',
    summary: 'Drain a host',
    description:
      'No new VMs are placed on the host, and an event notifies its tenants. A drain never stops a VM. The state becomes `drained` when the last VM has left.',
    access: 'operator',
    response: Host,
    errors: ['conflict'],
  },
  adminHostMaintenanceSet: {
    method: 'POST',
    path: '/v0.1/admin/hosts/{host_id}/maintenance',
    tag: 'Operators',
    summary: 'Announce maintenance of a host',
    description:
      'The tenants with VMs on the host see an alert, and get an event 7 days, 24 hours and 1 hour before the maintenance. No VM is stopped. A new announcement replaces the earlier one.',
    access: 'operator',
    body: body('HostMaintenance', {
      at: Instant,
      note: Type.Optional(PlainText({ maxLength: 500, examples: ['New power supplies'] })),
    }),
    response: Host,
  },
  adminHostMaintenanceDelete: {
    method: 'DELETE',
    path: '/v0.1/admin/hosts/{host_id}/maintenance',
    tag: 'Operators',
    summary: 'Cancel or end the maintenance of a host',
    description: 'Tenants who were notified get an event if the maintenance has not begun.',
    access: 'operator',
    response: Host,
  },
  adminHostForget: {
    method: 'POST',
    path: '/v0.1/admin/hosts/{host_id}/forget',
    tag: 'Operators',
    summary: 'Declare a host permanently lost',
    isDestructive: true,
    description:
      'The host must be down. Its VMs lose their OS disks, and disks stored on it are deleted. Its GPUs become `gone`. VMs that were deleted while the host was unreachable release their disks and addresses. Reports from the host are rejected until it is registered again.',
    access: 'operator',
    response: Host,
    errors: ['conflict'],
  },
  adminHostDelete: {
    method: 'DELETE',
    path: '/v0.1/admin/hosts/{host_id}',
    tag: 'Operators',
    summary: 'Remove an empty host',
    access: 'operator',
    response: Empty,
    errors: ['conflict'],
  },
  adminGpuUpdate: {
    method: 'PATCH',
    path: '/v0.1/admin/gpus/{gpu_id}',
    tag: 'Operators',
    summary: 'Quarantine a GPU, or release it from quarantine',
    access: 'operator',
    body: body('GpuUpdate', { state: Type.Enum(['free', 'quarantined']) }),
    response: Gpu,
    errors: ['conflict'],
  },
  adminGpuFaultList: {
    method: 'GET',
    path: '/v0.1/admin/gpus/{gpu_id}/faults',
    tag: 'Operators',
    summary: 'List the faults of a GPU',
    description: 'Newest first. Faults are kept for 400 days.',
    access: 'operator',
    query: Type.Object(pageQuery),
    response: pagedList('GpuFaultList', GpuFault),
  },
  adminGpuFaultDayList: {
    method: 'GET',
    path: '/v0.1/admin/gpu-faults',
    tag: 'Operators',
    summary: 'Count GPU faults by day',
    description: 'Oldest day first. A day without a fault has no entry. The last day is today.',
    access: 'operator',
    query: Type.Object({
      days: Type.Optional(Type.Integer({ minimum: 1, maximum: maxFaultDays, default: 30 })),
      group_by: Type.Optional(Type.Enum([...faultGroupings], { default: 'model' })),
      location: Type.Optional(Type.String({ maxLength: 100 })),
    }),
    response: wholeList('GpuFaultDayList', GpuFaultDay),
  },
  adminGpuCheck: {
    method: 'POST',
    path: '/v0.1/admin/gpus/{gpu_id}/check',
    tag: 'Operators',
    summary: 'Check a GPU that no VM uses',
    description:
      'The GPU is in quarantine until its host reports again. If it passes the check, it returns to stock; otherwise it stays in quarantine, and `last_check` says why.',
    access: 'operator',
    response: Gpu,
    errors: ['conflict'],
  },
  adminLocationList: {
    method: 'GET',
    path: '/v0.1/admin/locations',
    tag: 'Operators',
    summary: 'List locations',
    access: 'operator',
    response: wholeList('AdminLocationList', AdminLocation),
  },
  adminCapacityList: {
    method: 'GET',
    path: '/v0.1/admin/capacity',
    tag: 'Operators',
    summary: 'List the number of GPUs by location and family',
    access: 'operator',
    response: wholeList('FamilyCapacityList', FamilyCapacity),
  },
})

import Type, { type Static } from 'typebox'
import { OnGpuFault, VmHealth } from './instances/health.ts'
import {
  Description,
  Labels,
  NonEmptyTimestamp,
  ResourceName,
  record,
  Timestamp,
  Uuid,
  UuidOrEmpty,
} from './schema.ts'
import {
  diskStates,
  expiryActions,
  groupStates,
  maxGroupMembers,
  memberLossPolicies,
  placementPolicies,
  ruleStates,
  vmStates,
} from './states.ts'
import { diskTypes } from './vm-types.ts'

/** The resources that operations create and change. The result of an operation is one of them. */

export const DiskSize = Type.String({
  format: 'disk-size',
  pattern: '^[1-9][0-9]{0,6}(GiB|TiB)$',
  description: 'A whole number followed by GiB or TiB.',
  examples: ['100GiB'],
})
export const DiskMode = Type.Enum(['read-write', 'read-only'])

export const BlockSize = Type.Integer({
  format: 'int64',
  description: 'In bytes. 0 for resources without a block size.',
})

export const DeletionProtection = Type.Boolean({
  description: 'While this is true, a deletion fails with the error `protected`.',
})

/** Fields that can be changed at any time, because they do not affect the resource on its host. */
export const annotations = {
  labels: Type.Optional(Labels),
  description: Type.Optional(Description),
  deletion_protection: Type.Optional(DeletionProtection),
}
export interface Annotations {
  labels?: Labels
  description?: string
  deletion_protection?: boolean
}
/** One or more of these fields; `labels` replaces all existing labels. */
export const AnnotationUpdate = Type.Object(
  { name: Type.Optional(ResourceName), ...annotations },
  { additionalProperties: false, minProperties: 1 },
)
export type AnnotationUpdate = Static<typeof AnnotationUpdate>

export const Disk = record('Disk', {
  id: Uuid,
  name: Type.String(),
  type: Type.Enum([...diskTypes]),
  size: DiskSize,
  location: Type.String(),
  block_size: BlockSize,
  created_at: NonEmptyTimestamp,
  updated_at: NonEmptyTimestamp,
  serial_number: Type.String(),
  state: Type.Enum([...diskStates]),
  attached_to: Type.Array(
    Type.Object({
      vm_id: Uuid,
      attachment_type: Type.Enum(['os', 'data']),
      mode: DiskMode,
      vm_deleted: Type.Boolean({
        description:
          'The VM was deleted while its host was unreachable. The disk can be used again when the host is up again, or when an operator declares the host lost.',
      }),
    }),
  ),
  labels: Labels,
  description: Description,
  deletion_protection: DeletionProtection,
})
export type Disk = Static<typeof Disk>

export const VmDisk = record('VmDisk', {
  id: Uuid,
  name: Type.String(),
  type: Type.String(),
  size: Type.String(),
  location: Type.String(),
  block_size: BlockSize,
  created_at: NonEmptyTimestamp,
  updated_at: NonEmptyTimestamp,
  serial_number: Type.String({
    description: 'The serial number that the guest sees. Use it to find the disk in the guest.',
  }),
  attachment_type: Type.Enum(['os', 'data']),
  mode: DiskMode,
})

export const NetworkInterface = record('NetworkInterface', {
  id: Uuid,
  name: Type.String(),
  network: Uuid,
  subnet: Uuid,
  interface_type: Type.Literal('Ethernet'),
  mac_address: Type.String(),
  ips: Type.Array(
    Type.Object({
      private_ipv4: Type.Object({ address: Type.String() }),
      public_ipv4: Type.Object({
        address: Type.String({ description: 'Empty if the VM has no public address.' }),
        id: UuidOrEmpty,
        type: Type.String({
          description:
            '`dynamic`, `static` for a reserved address, or empty if the VM has no public address.',
          examples: ['dynamic'],
        }),
      }),
    }),
  ),
})

export const idleActions = ['stop', 'notify'] as const
const idleLimits = { utilization: { minimum: 1, maximum: 50 }, window: { minimum: 600, maximum: 86_400 } }
const idleFields = {
  min_gpu_utilization: Type.Integer({
    ...idleLimits.utilization,
    description: 'In percent. A GPU is idle if its utilization is below this value.',
  }),
  window_seconds: Type.Integer({
    ...idleLimits.window,
    description: 'How long every GPU must have been idle.',
  }),
  action: Type.Enum([...idleActions], {
    description:
      '`stop` stops the VM 600 seconds after the event `vm.idle_stopping`; `notify` only sends the event `vm.idle`.',
  }),
}
const ignoreSsh = Type.Boolean({
  description: 'Whether a VM with open SSH sessions can count as idle. The default is `false`.',
})
export const IdlePolicy = record('IdlePolicy', { ...idleFields, ignore_ssh: ignoreSsh })
export type IdlePolicy = Static<typeof IdlePolicy>
export const IdlePolicyInput = Type.Object(
  { ...idleFields, ignore_ssh: Type.Optional(ignoreSsh) },
  {
    additionalProperties: false,
    description:
      'What happens when all GPUs of the VM are idle. The image must have the tag `slipway-guest`. Missing data never counts as idle.',
  },
)

export const Vm = record('Vm', {
  id: Uuid,
  project_id: Uuid,
  type: Type.String({ examples: ['a100.1x'] }),
  state: Type.Enum([...vmStates]),
  ssh_destination: Type.String({
    description:
      '`user@address` or `user@address:port`. Empty until the VM is running, while it is stopped, and if it has no public address.',
  }),
  created_at: NonEmptyTimestamp,
  updated_at: NonEmptyTimestamp,
  name: Type.String(),
  location: Type.String(),
  commitment_period: Type.Integer({
    description: 'The length of the reservation in whole months. 0 if the VM does not use a reservation.',
  }),
  commitment_end: Type.String({
    description: 'The end of the reservation. Empty if the VM does not use a reservation.',
  }),
  disks: Type.Array(VmDisk),
  network_interfaces: Type.Array(NetworkInterface),
  host_channel_adapters: Type.Array(Type.String(), { description: 'Empty if there are none.' }),
  virtualization_features: Type.Object({ nested_virtualization: Type.Boolean() }),
  instance_template_id: Type.String({
    ...UuidOrEmpty,
    description:
      'The version of the instance template that the VM was created from, even if that version has been deleted since. Empty if the VM was created without a template.',
  }),
  instance_group_id: Type.String({
    ...UuidOrEmpty,
    description: 'The instance group that the VM is a member of. Empty if the VM is not in a group.',
  }),
  reservation_id: Type.String({
    description:
      'The reservation whose GPUs the VM uses now. Empty while the VM is stopped or billed on demand.',
  }),
  image: Type.String({ description: 'The name of the image, or of the custom image.' }),
  custom_image_id: Type.String({
    ...UuidOrEmpty,
    description:
      'The id of the custom image that the VM was created from. The id stays here after the image is deleted. Empty if the VM was created from another image.',
  }),
  expires_at: Timestamp,
  on_expiry: Type.Enum([...expiryActions]),
  started_at: Type.String({
    ...Timestamp,
    description: 'When the VM was last started or reset. Empty while the VM is stopped.',
  }),
  usd_per_hour: Type.Union([Type.Number(), Type.Null()], {
    description: 'The price of the VM type per hour while the VM runs. Null if no price is set.',
  }),
  cost_usd: Type.Number({ description: 'The cost so far in US dollars, without data disks.' }),
  idle_policy: Type.Union([IdlePolicy, Type.Null()]),
  idle_since: Type.String({
    ...Timestamp,
    description: 'When the VM became idle, as defined by its `idle_policy`. Empty if the VM is not idle.',
  }),
  health: VmHealth,
  on_gpu_fault: OnGpuFault,
  last_replaced_at: Type.String({
    ...Timestamp,
    description:
      'When the VM was last moved to other GPUs by the action `REPLACE`. Empty if this has never happened.',
  }),
  labels: Labels,
  description: Description,
  deletion_protection: DeletionProtection,
  ssh_public_keys: Type.Array(Type.String(), { description: 'All SSH keys that the VM was created with.' }),
  ssh_host_keys: Type.Array(Type.String(), {
    description:
      'Lines for a `known_hosts` file. The service creates the host key with the VM and installs it in the guest, so that a client can verify even its first connection. Empty if the guest creates its own host keys, or if the engine is simulated.',
    examples: [['198.18.0.7 ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGx0bnVPXnO3xXQ2n3yUoP1yT8kQ5cXqkqN3u9Ckm']],
  }),
  startup_script_sha256: Type.String({
    description: 'The SHA-256 of the startup script in hexadecimal. Empty if there is no startup script.',
  }),
  scratch_gb: Type.Integer({
    description:
      'Size of the local disk of the VM type. Its data is lost when the VM stops. 0 if the type has none.',
  }),
})
export type Vm = Static<typeof Vm>

export const PlacementPolicy = Type.Enum([...placementPolicies], {
  description:
    'How the members of an instance group are placed: `spread` puts each member on a separate host, `pack` uses as few hosts as possible, `unspecified` has no preference.',
})
export const OnMemberLoss = Type.Enum([...memberLossPolicies], {
  description:
    'What happens when a member is lost with its host: `none` leaves the group as it is; `replace` creates a new VM with the same name and rank and a new address, and discards the local data of the lost VM. Members with deletion protection are not replaced.',
})
export const MemberCount = (minimum: number) => Type.Integer({ minimum, maximum: maxGroupMembers })

export const InstanceGroupMember = record('InstanceGroupMember', {
  vm_id: Uuid,
  rank: Type.Integer({
    description: 'The position among the members, sorted by number, from 0.',
  }),
  name: Type.String({ examples: ['trainer-1'] }),
  private_address: Type.String({ examples: ['172.27.16.7'] }),
  state: Type.Enum([...vmStates]),
})

export const InstanceGroup = record('InstanceGroup', {
  id: Uuid,
  name: Type.String(),
  template_id: Type.String({
    ...UuidOrEmpty,
    description: 'The template version for new members. Empty if there is none.',
  }),
  project_id: Uuid,
  state: Type.Enum([...groupStates], {
    description:
      'UPDATING while an operation on the group is in progress, UNHEALTHY if a member has crashed, is unreachable or is missing. A stopped group is HEALTHY.',
  }),
  running_instance_count: Type.Integer(),
  desired_count: Type.Integer(),
  instances: Type.Array(Uuid, { description: 'The ids of all members, sorted by number.' }),
  active_instances: Type.Array(Uuid, { description: 'The members that are running.' }),
  inactive_instances: Type.Array(Uuid, { description: 'The members that are not running.' }),
  created_at: NonEmptyTimestamp,
  updated_at: NonEmptyTimestamp,
  location: Type.String(),
  placement_policy: PlacementPolicy,
  on_member_loss: OnMemberLoss,
  generation: Type.Integer({ description: 'Increases whenever members are added, removed or replaced.' }),
  members: Type.Array(InstanceGroupMember),
  labels: Labels,
  description: Description,
  deletion_protection: DeletionProtection,
})
export type InstanceGroup = Static<typeof InstanceGroup>

export const FirewallEndpoint = record('FirewallEndpoint', {
  resource_id: Type.String({ description: 'A VM, subnet or network. Empty if `cidr` is used.' }),
  cidr: Type.String({ description: 'An IPv4 block or address. Empty if `resource_id` is used.' }),
})
export type FirewallEndpoint = Static<typeof FirewallEndpoint>

export const RuleDirection = Type.Enum(['ingress', 'egress'])
export const RuleAction = Type.Enum(['allow', 'deny'])
export const RuleProtocol = Type.Enum(['tcp', 'udp', 'icmp'])
export const FirewallRule = record('FirewallRule', {
  id: Uuid,
  name: Type.String(),
  direction: RuleDirection,
  action: RuleAction,
  vpc_network_id: Uuid,
  state: Type.Enum([...ruleStates]),
  sources: Type.Array(FirewallEndpoint),
  source_ports: Type.Array(Type.String()),
  destinations: Type.Array(FirewallEndpoint),
  destination_ports: Type.Array(Type.String()),
  protocols: Type.Array(RuleProtocol),
  labels: Labels,
})
export type FirewallRule = Static<typeof FirewallRule>

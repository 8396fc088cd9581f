import Type, { type Static } from 'typebox'
import { OnGpuFault } from './instances/health.ts'
import {
  Operation,
  OperationList,
  OperationListQuery,
  OperationStarted,
  OperationWaitQuery,
} from './operations.ts'
import { AnnotationUpdate, annotations, DiskMode, DiskSize, IdlePolicyInput, Vm } from './resources.ts'
import { defineRoutes } from './route.ts'
import {
  body,
  CommaList,
  labelQuery,
  pagedList,
  pageQuery,
  ResourceName,
  record,
  sortQuery,
  Uuid,
} from './schema.ts'
import { SshPublicKey } from './ssh-keys.ts'
import { expiryActions, maxTtlSeconds, minTtlSeconds, vmActionNames, vmStates } from './states.ts'
import { diskTypes, maxDisksPerVm, vmTypeNames } from './vm-types.ts'

const closed = { additionalProperties: false }
const maxDisks = maxDisksPerVm['persistent-ssd'] + maxDisksPerVm['shared-volume']

const script = { maxLength: 65536, pattern: '^[^\\u0000]*$', examples: ['#!/bin/sh\nnvidia-smi\n'] }
const StartupScript = Type.String({
  ...script,
  format: 'startup-script',
  description:
    'A script that runs at every boot. If its first line starts with `#!`, the program named in that line runs it; otherwise `/bin/sh` does. A script that starts with `#cloud-config` is passed to cloud-init; the image must have the tag `cloud-init`. At most 64 KiB; empty means no script.',
})
const ShutdownScript = Type.String({
  ...script,
  format: 'shutdown-script',
  description:
    'A script that runs before the VM stops. If its first line starts with `#!`, the program named in that line runs it; otherwise `/bin/sh` does. At most 64 KiB; empty means no script.',
})
const VmTypeName = Type.Enum(vmTypeNames, {
  examples: ['a100.1x'],
  description: 'A VM type from the catalogue.',
})
const TtlSeconds = Type.Integer({
  minimum: minTtlSeconds,
  maximum: maxTtlSeconds,
  description:
    'Time to live in seconds. For a new VM, it is counted from when the VM first runs; for an existing VM, from the time of the request.',
})
const NewTtlSeconds = Type.Integer({
  minimum: 0,
  maximum: maxTtlSeconds,
  description: `Time to live in seconds, counted from the time of the request: 0 for no expiry, or from ${minTtlSeconds} to ${maxTtlSeconds}.`,
})
const OnExpiry = Type.Enum([...expiryActions])

const ReservationSpecification = Type.Union(
  [
    Type.Object({ id: Type.String({ ...Uuid, description: 'The reservation to use.' }) }, closed),
    Type.Object(
      {
        selection_strategy: Type.Enum(['lowest_cost', 'on_demand'], {
          description:
            '`lowest_cost`: the VM uses the cheapest reservation that has enough unused GPUs, or no reservation if there is none. `on_demand`: the VM uses no reservation when it is created.',
        }),
      },
      closed,
    ),
  ],
  {
    description:
      'Which reservation the VM uses when it is created: the one in `id`, or the one that `selection_strategy` chooses. The default is the strategy `lowest_cost`. The action `START` uses the strategy `lowest_cost`.',
  },
)

/** The fields of a VM request other than the name. Templates and groups have the same fields. */
export const vmFields = {
  type: Type.Optional(
    Type.Enum(vmTypeNames, {
      examples: ['a100.1x'],
      description: 'A VM type from the catalogue. Required unless an instance template sets it.',
    }),
  ),
  location: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 100,
      examples: ['us-east1-a'],
      description:
        'A location, or `any` for the first location that has stock, the image, a subnet of the project and the given disks. The record of the VM shows the chosen location. Required unless an instance template sets it.',
    }),
  ),
  image: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 200,
      examples: ['ubuntu24.04-nvidia:latest'],
      description:
        'The name of an image, for example `ubuntu24.04-nvidia:latest`. If the name does not end in a colon and a version, `:latest` is used. Either `image` or `custom_image` is required, in the request or in its instance template.',
    }),
  ),
  custom_image: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 127,
      examples: ['trainer:v1'],
      description:
        'The id or name of a custom image of the project, instead of `image`. If the name does not end in a colon and a version, the newest available image with that name is used. `location` must be the location of the image, or `any`. The default size of the OS disk is then at least the size of the image.',
    }),
  ),
  ssh_public_key: Type.Optional(SshPublicKey),
  ssh_key_ids: Type.Optional(
    Type.Array(Uuid, {
      maxItems: 32,
      uniqueItems: true,
      description:
        'The ids of registered SSH keys, which are installed in addition to `ssh_public_key`. At least one key is required, in this field or in `ssh_public_key`.',
    }),
  ),
  startup_script: Type.Optional(StartupScript),
  shutdown_script: Type.Optional(ShutdownScript),
  disks: Type.Optional(
    Type.Array(
      Type.Object(
        {
          disk_id: Uuid,
          attachment_type: Type.Optional(Type.Literal('data')),
          mode: Type.Optional(DiskMode),
        },
        { additionalProperties: false },
      ),
      { maxItems: maxDisks },
    ),
  ),
  new_disks: Type.Optional(
    Type.Array(
      Type.Object(
        {
          size: DiskSize,
          type: Type.Optional(Type.Enum([...diskTypes])),
          block_size: Type.Optional(Type.Enum([512, 4096], { format: 'int64', description: 'In bytes.' })),
        },
        closed,
      ),
      {
        maxItems: maxDisksPerVm['persistent-ssd'],
        description:
          'Disks that are created with the VM and attached to it. They are named `<vm>-disk-1`, `<vm>-disk-2` and so on, and they are kept when the VM is deleted.',
      },
    ),
  ),
  subnet_id: Type.Optional(
    Type.String({
      ...Uuid,
      description: 'The default is the subnet of the default network in the location.',
    }),
  ),
  public_ip: Type.Optional(Type.Enum(['dynamic', 'none'])),
  os_disk_size: Type.Optional(
    Type.String({
      ...DiskSize,
      description:
        'From 128GiB, the default, to 2TiB. The part above 128 GiB counts toward the quota `disk_gib` and is billed as persistent-ssd.',
      examples: ['256GiB'],
    }),
  ),
  ...annotations,
  ttl_seconds: Type.Optional(TtlSeconds),
  on_expiry: Type.Optional(OnExpiry),
  idle_policy: Type.Optional(IdlePolicyInput),
  on_gpu_fault: Type.Optional(OnGpuFault),
  reservation_specification: Type.Optional(ReservationSpecification),
}

export const VmCreate = body(
  'VmCreate',
  {
    name: ResourceName,
    ...vmFields,
    instance_template_id: Type.Optional(
      Type.String({
        ...Uuid,
        description:
          'A version of an instance template of the project. A field of this request replaces the same field of the template.',
      }),
    ),
    public_address_id: Type.Optional(
      Type.String({
        ...Uuid,
        description:
          'A reserved address of the project that no VM has. The address stays reserved when the VM is deleted.',
      }),
    ),
  },
  {
    examples: [
      {
        name: 'train-7',
        type: 'a100.1x',
        location: 'us-east1-a',
        image: 'ubuntu24.04-nvidia:latest',
        ssh_public_key:
          'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBvmWxvLnVPXnO3xXQ2n3yUoP1yT8kQ5cXqkqN3u9Ckm ada@laptop',
      },
    ],
  },
)
export type VmCreate = Static<typeof VmCreate>

export const VmUpdate = Type.Union(
  [
    Type.Object({ action: Type.Enum([...vmActionNames]) }, closed),
    Type.Object({ action: Type.Literal('RESERVE'), reservation_id: Uuid }, closed),
    Type.Object({ action: Type.Literal('UNRESERVE') }, closed),
    Type.Object({ type: VmTypeName }, closed),
    Type.Object({ ttl_seconds: NewTtlSeconds, on_expiry: Type.Optional(OnExpiry) }, closed),
    Type.Object({ idle_policy: Type.Union([IdlePolicyInput, Type.Null()]) }, closed),
    Type.Object({ on_gpu_fault: OnGpuFault }, closed),
    AnnotationUpdate,
  ],
  {
    description:
      'Exactly one of: an action; `RESERVE`, which moves a running VM into a reservation, or `UNRESERVE`, which moves a VM out of its reservation; a new type of the same family, while the VM is stopped; a new time to live, counted from now, or 0 for no expiry; a new idle policy, or null for none; what happens when a GPU is unhealthy; or one or more of name, description, labels and deletion protection. `labels` replaces all existing labels. A change of name, description, labels, deletion protection, idle policy, `on_gpu_fault` or reservation returns an operation that has already succeeded, and is accepted even while another operation is in progress.',
    examples: [{ action: 'STOP' }],
  },
)
export type VmUpdate = Static<typeof VmUpdate>

export const vmRoutes = defineRoutes({
  vmCreate: {
    method: 'POST',
    path: '/v0.1/projects/{project_id}/vms',
    tag: 'VMs',
    summary: 'Create a VM',
    description: 'When the response arrives, the GPUs, quota, name and addresses are already reserved.',
    access: 'member',
    costsMoney: true,
    isBatched: true,
    body: VmCreate,
    response: OperationStarted,
    errors: ['already_exists', 'conflict', 'out_of_stock', 'quota_exceeded'],
  },
  vmList: {
    method: 'GET',
    path: '/v0.1/projects/{project_id}/vms',
    tag: 'VMs',
    summary: 'List VMs',
    access: 'viewer',
    query: Type.Object({
      ...pageQuery,
      ...sortQuery,
      ids: CommaList('VM ids'),
      names: CommaList('Names'),
      types: CommaList('VM types', vmTypeNames),
      locations: CommaList('Locations'),
      states: CommaList('States', vmStates),
      ...labelQuery,
    }),
    response: pagedList('VmList', Vm),
  },
  vmGet: {
    method: 'GET',
    path: '/v0.1/projects/{project_id}/vms/{vm_id}',
    tag: 'VMs',
    summary: 'Read a VM',
    access: 'viewer',
    response: Vm,
  },
  vmUpdate: {
    method: 'PATCH',
    path: '/v0.1/projects/{project_id}/vms/{vm_id}',
    tag: 'VMs',
    summary: 'Start, stop, reset, replace or change a VM',
    description:
      'REPLACE stops the VM and starts it on other GPUs. The VM keeps its id, name, disks, addresses and host keys; its local scratch data is lost.',
    isDestructive: true,
    access: 'member',
    body: VmUpdate,
    response: OperationStarted,
    errors: ['payment_method_required', 'already_exists', 'conflict', 'out_of_stock', 'quota_exceeded'],
  },
  vmDelete: {
    method: 'DELETE',
    path: '/v0.1/projects/{project_id}/vms/{vm_id}',
    tag: 'VMs',
    summary: 'Delete a VM',
    description:
      'Works in any state. Deletes the OS disk and keeps data disks. A repeated request returns the same operation.',
    access: 'member',
    isBatched: true,
    response: OperationStarted,
    errors: ['protected'],
  },
  vmAttachDisks: {
    method: 'POST',
    path: '/v0.1/projects/{project_id}/vms/{vm_id}/attach-disks',
    tag: 'VMs',
    summary: 'Attach disks',
    access: 'member',
    costsMoney: true,
    body: body('VmAttachDisks', {
      attach_disks: Type.Array(
        Type.Object({ disk_id: Uuid, attachment_type: Type.Literal('data'), mode: DiskMode }, closed),
        { minItems: 1, maxItems: maxDisks },
      ),
    }),
    response: OperationStarted,
    errors: ['conflict'],
  },
  vmDetachDisks: {
    method: 'POST',
    path: '/v0.1/projects/{project_id}/vms/{vm_id}/detach-disks',
    tag: 'VMs',
    summary: 'Detach disks',
    isDestructive: true,
    access: 'member',
    body: body('VmDetachDisks', { detach_disks: Type.Array(Uuid, { minItems: 1, maxItems: maxDisks }) }),
    response: OperationStarted,
    errors: ['conflict'],
  },
  vmSerialLog: {
    method: 'GET',
    path: '/v0.1/projects/{project_id}/vms/{vm_id}/serial-log',
    tag: 'VMs',
    summary: 'Read the serial console',
    access: 'viewer',
    query: Type.Object({
      offset: Type.Optional(
        Type.Integer({
          minimum: 0,
          description: 'Where to start, in bytes. By default, the last 64 KiB are returned.',
        }),
      ),
    }),
    response: record('SerialLog', { content: Type.String(), next_offset: Type.Integer() }),
  },
  vmOperationList: {
    method: 'GET',
    path: '/v0.1/projects/{project_id}/vms/operations',
    tag: 'VMs',
    summary: 'List VM operations',
    access: 'viewer',
    query: OperationListQuery,
    response: OperationList,
  },
  vmOperationGet: {
    method: 'GET',
    path: '/v0.1/projects/{project_id}/vms/operations/{operation_id}',
    tag: 'VMs',
    summary: 'Read a VM operation, or wait until it ends',
    access: 'viewer',
    query: OperationWaitQuery,
    response: Operation,
  },
})

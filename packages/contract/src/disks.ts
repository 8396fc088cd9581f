import Type, { type Static } from 'typebox'
import {
  Operation,
  OperationList,
  OperationListQuery,
  OperationStarted,
  OperationWaitQuery,
} from './operations.ts'
import { AnnotationUpdate, annotations, Disk, DiskSize } from './resources.ts'
import { defineRoutes } from './route.ts'
import { body, CommaList, labelQuery, pagedList, pageQuery, ResourceName, sortQuery, Uuid } from './schema.ts'
import { diskTypes } from './vm-types.ts'

export const DiskCreate = body(
  'DiskCreate',
  {
    name: ResourceName,
    size: Type.Optional(
      Type.String({
        ...DiskSize,
        description:
          'A whole number followed by GiB or TiB. Required unless `snapshot_id` is given. With `snapshot_id`, the default is the size of the snapshot, which is also the minimum.',
      }),
    ),
    location: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 100,
        description:
          'Required unless `snapshot_id` is given. With `snapshot_id`, it must be the location of the snapshot.',
      }),
    ),
    snapshot_id: Type.Optional(
      Type.String({ ...Uuid, description: 'The snapshot to create the disk from.' }),
    ),
    block_size: Type.Optional(
      Type.Enum([512, 4096], {
        format: 'int64',
        description:
          'In bytes. For a shared volume, the value has no effect, but is stored and returned. With `snapshot_id`, it must be the block size of the snapshot.',
      }),
    ),
    type: Type.Optional(Type.Enum([...diskTypes])),
    ...annotations,
  },
  { examples: [{ name: 'datasets', size: '500GiB', location: 'us-east1-a' }] },
)
export type DiskCreate = Static<typeof DiskCreate>

export const DiskUpdate = Type.Union(
  [Type.Object({ size: DiskSize }, { additionalProperties: false }), AnnotationUpdate],
  {
    description:
      'Either a larger size, or one or more of name, description, labels and deletion protection. `labels` replaces all existing labels. Every change except a resize returns an operation that has already succeeded, and is accepted even while another operation is in progress.',
    examples: [{ size: '1TiB' }],
  },
)
export type DiskUpdate = Static<typeof DiskUpdate>

export const diskRoutes = defineRoutes({
  diskCreate: {
    method: 'POST',
    path: '/v0.1/projects/{project_id}/disks',
    tag: 'Disks',
    summary: 'Create a disk',
    access: 'member',
    costsMoney: true,
    body: DiskCreate,
    response: OperationStarted,
    errors: ['already_exists', 'conflict', 'quota_exceeded'],
  },
  diskList: {
    method: 'GET',
    path: '/v0.1/projects/{project_id}/disks',
    tag: 'Disks',
    summary: 'List disks',
    access: 'viewer',
    query: Type.Object({
      ...pageQuery,
      ...sortQuery,
      ids: CommaList('Disk ids'),
      names: CommaList('Names'),
      types: CommaList('Disk types', diskTypes),
      locations: CommaList('Locations'),
      attached_to: CommaList('Ids of VMs that the disks are attached to'),
      ...labelQuery,
    }),
    response: pagedList('DiskList', Disk),
  },
  diskGet: {
    method: 'GET',
    path: '/v0.1/projects/{project_id}/disks/{disk_id}',
    tag: 'Disks',
    summary: 'Read a disk',
    access: 'viewer',
    response: Disk,
  },
  diskUpdate: {
    method: 'PATCH',
    path: '/v0.1/projects/{project_id}/disks/{disk_id}',
    tag: 'Disks',
    summary: 'Resize a disk, or change its name, description, labels or deletion protection',
    access: 'member',
    body: DiskUpdate,
    response: OperationStarted,
    errors: ['payment_method_required', 'already_exists', 'conflict', 'quota_exceeded'],
  },
  diskDelete: {
    method: 'DELETE',
    path: '/v0.1/projects/{project_id}/disks/{disk_id}',
    tag: 'Disks',
    summary: 'Delete a disk',
    access: 'member',
    response: OperationStarted,
    errors: ['protected', 'conflict'],
  },
  diskOperationList: {
    method: 'GET',
    path: '/v0.1/projects/{project_id}/disks/operations',
    tag: 'Disks',
    summary: 'List disk operations',
    access: 'viewer',
    query: OperationListQuery,
    response: OperationList,
  },
  diskOperationGet: {
    method: 'GET',
    path: '/v0.1/projects/{project_id}/disks/operations/{operation_id}',
    tag: 'Disks',
    summary: 'Read a disk operation, or wait until it ends',
    access: 'viewer',
    query: OperationWaitQuery,
    response: Operation,
  },
})

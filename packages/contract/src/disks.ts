import Type, { type Static } from 'typebox'
import {
  Operation,
  OperationList,
  OperationListQuery,
  OperationStarted,
  OperationWaitQuery,
} from './operations.ts'
import { defineRoutes } from './route.ts'
import { body, CommaList, pagedList, pageQuery, ResourceName, record, Timestamp, Uuid } from './schema.ts'
import { diskStates } from './states.ts'
import { diskTypes } from './vm-types.ts'

export const DiskSize = Type.String({
  pattern: '^[1-9][0-9]{0,6}(GiB|TiB)$',
  description: 'A whole number followed by GiB or TiB.',
  examples: ['100GiB'],
})
export const DiskMode = Type.Enum(['read-write', 'read-only'])

export const Disk = record('Disk', {
  id: Uuid,
  name: Type.String(),
  type: Type.Enum([...diskTypes]),
  size: DiskSize,
  location: Type.String(),
  block_size: Type.Integer(),
  created_at: Timestamp,
  updated_at: Timestamp,
  serial_number: Type.String(),
  state: Type.Enum([...diskStates]),
  attached_to: Type.Array(
    Type.Object({ vm_id: Uuid, attachment_type: Type.Enum(['os', 'data']), mode: DiskMode }),
  ),
})
export type Disk = Static<typeof Disk>

export const DiskCreate = body(
  'DiskCreate',
  {
    name: ResourceName,
    size: DiskSize,
    location: Type.String({ minLength: 1, maxLength: 100 }),
    block_size: Type.Optional(Type.Enum([512, 4096])),
    type: Type.Optional(Type.Enum([...diskTypes])),
  },
  { examples: [{ name: 'datasets', size: '500GiB', location: 'us-east1-a' }] },
)
export type DiskCreate = Static<typeof DiskCreate>

export const diskRoutes = defineRoutes({
  diskCreate: {
    method: 'POST',
    path: '/v0.1/projects/{project_id}/disks',
    tag: 'Disks',
    summary: 'Create a disk',
    access: 'member',
    costsMoney: true,
    body: DiskCreate,
    answer: OperationStarted,
    errors: ['already_exists', 'quota_exceeded'],
  },
  diskList: {
    method: 'GET',
    path: '/v0.1/projects/{project_id}/disks',
    tag: 'Disks',
    summary: 'List disks',
    access: 'viewer',
    query: Type.Object({
      ...pageQuery,
      ids: CommaList('Disk ids'),
      names: CommaList('Names'),
      types: CommaList('Disk types'),
      locations: CommaList('Locations'),
      attached_to: CommaList('VM ids'),
    }),
    answer: pagedList('DiskList', Disk),
  },
  diskGet: {
    method: 'GET',
    path: '/v0.1/projects/{project_id}/disks/{disk_id}',
    tag: 'Disks',
    summary: 'Read a disk',
    access: 'viewer',
    answer: Disk,
  },
  diskUpdate: {
    method: 'PATCH',
    path: '/v0.1/projects/{project_id}/disks/{disk_id}',
    tag: 'Disks',
    summary: 'Grow a disk',
    access: 'member',
    costsMoney: true,
    body: body('DiskUpdate', { size: DiskSize }, { examples: [{ size: '1TiB' }] }),
    answer: OperationStarted,
    errors: ['conflict', 'quota_exceeded'],
  },
  diskDelete: {
    method: 'DELETE',
    path: '/v0.1/projects/{project_id}/disks/{disk_id}',
    tag: 'Disks',
    summary: 'Delete a disk',
    access: 'member',
    answer: OperationStarted,
    errors: ['conflict'],
  },
  diskOperationList: {
    method: 'GET',
    path: '/v0.1/projects/{project_id}/disks/operations',
    tag: 'Disks',
    summary: 'List disk operations',
    access: 'viewer',
    query: OperationListQuery,
    answer: OperationList,
  },
  diskOperationGet: {
    method: 'GET',
    path: '/v0.1/projects/{project_id}/disks/operations/{operation_id}',
    tag: 'Disks',
    summary: 'Read a disk operation, or wait for its end',
    access: 'viewer',
    query: OperationWaitQuery,
    answer: Operation,
  },
})

import Type, { type Static } from 'typebox'
import {
  Operation,
  OperationList,
  OperationListQuery,
  OperationStarted,
  OperationWaitQuery,
} from '../operations.ts'
import { AnnotationUpdate, annotations } from '../resources.ts'
import { defineRoutes } from '../route.ts'
import { body, CommaList, labelQuery, pagedList, pageQuery, ResourceName, Uuid } from '../schema.ts'
import { Snapshot } from './records.ts'

export const SnapshotCreate = body(
  'SnapshotCreate',
  {
    name: ResourceName,
    disk_id: Type.String({ ...Uuid, description: 'A disk of the type persistent-ssd.' }),
    require_frozen: Type.Optional(
      Type.Boolean({
        description:
          'What happens if a running VM can write to the disk and has no QEMU guest agent to freeze its file systems: with `true`, the operation fails with `conflict`; with `false`, the default, the disk is copied without freezing.',
      }),
    ),
    ...annotations,
  },
  { examples: [{ name: 'datasets-monday', disk_id: '0199c6f2-9a1e-7c4b-8f51-6a2f0c1d7b02' }] },
)
export type SnapshotCreate = Static<typeof SnapshotCreate>

export const snapshotRoutes = defineRoutes({
  snapshotCreate: {
    method: 'POST',
    path: '/v0.1/projects/{project_id}/snapshots',
    tag: 'Disks',
    summary: 'Create a snapshot of a disk',
    description:
      'The snapshot has the content that the disk had when the operation began, and does not depend on the disk afterwards. To create a disk from a snapshot, use `POST /disks {snapshot_id}`. Until the operation ends, the disk cannot be resized, deleted, attached or detached, and its VM cannot be started or stopped. Snapshots count toward the organization’s quotas `snapshots` and `captured_gib`.',
    access: 'member',
    costsMoney: true,
    body: SnapshotCreate,
    response: OperationStarted,
    errors: ['already_exists', 'conflict', 'quota_exceeded'],
  },
  snapshotList: {
    method: 'GET',
    path: '/v0.1/projects/{project_id}/snapshots',
    tag: 'Disks',
    summary: 'List snapshots',
    access: 'viewer',
    query: Type.Object({
      ...pageQuery,
      names: CommaList('Names'),
      created_from: CommaList('Ids of disks'),
      ...labelQuery,
    }),
    response: pagedList('SnapshotList', Snapshot),
  },
  snapshotGet: {
    method: 'GET',
    path: '/v0.1/projects/{project_id}/snapshots/{snapshot_id}',
    tag: 'Disks',
    summary: 'Read a snapshot',
    access: 'viewer',
    response: Snapshot,
  },
  snapshotUpdate: {
    method: 'PATCH',
    path: '/v0.1/projects/{project_id}/snapshots/{snapshot_id}',
    tag: 'Disks',
    summary: 'Change the name, description, labels or deletion protection of a snapshot',
    access: 'member',
    body: AnnotationUpdate,
    response: Snapshot,
    errors: ['already_exists', 'conflict'],
  },
  snapshotDelete: {
    method: 'DELETE',
    path: '/v0.1/projects/{project_id}/snapshots/{snapshot_id}',
    tag: 'Disks',
    summary: 'Delete a snapshot',
    description:
      'Disks that were created from the snapshot keep their data. The request fails with `conflict` while a disk or an image is being created from the snapshot.',
    access: 'member',
    response: OperationStarted,
    errors: ['protected', 'conflict'],
  },
  snapshotOperationList: {
    method: 'GET',
    path: '/v0.1/projects/{project_id}/snapshots/operations',
    tag: 'Disks',
    summary: 'List operations on snapshots',
    access: 'viewer',
    query: OperationListQuery,
    response: OperationList,
  },
  snapshotOperationGet: {
    method: 'GET',
    path: '/v0.1/projects/{project_id}/snapshots/operations/{operation_id}',
    tag: 'Disks',
    summary: 'Read an operation on a snapshot, or wait until it ends',
    access: 'viewer',
    query: OperationWaitQuery,
    response: Operation,
  },
})

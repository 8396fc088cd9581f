import Type, { type Static } from 'typebox'
import {
  Operation,
  OperationList,
  OperationListQuery,
  OperationStarted,
  OperationWaitQuery,
} from '../operations.ts'
import { annotations } from '../resources.ts'
import { defineRoutes } from '../route.ts'
import { body, CommaList, labelQuery, pagedList, pageQuery, Uuid } from '../schema.ts'
import { CustomImage, CustomImageName, ImageTags } from './records.ts'

export const CustomImageCreate = body(
  'CustomImageCreate',
  {
    name: CustomImageName,
    tags: Type.Optional(ImageTags),
    vm_id: Type.Optional(
      Type.String({
        ...Uuid,
        description:
          'A VM whose OS disk is copied. It must be running or stopped. Exactly one of `vm_id`, `disk_id` and `snapshot_id` is required.',
      }),
    ),
    disk_id: Type.Optional(Type.String({ ...Uuid, description: 'A disk with an operating system.' })),
    snapshot_id: Type.Optional(
      Type.String({ ...Uuid, description: 'A snapshot of a disk with an operating system.' }),
    ),
    allow_crash_consistent: Type.Optional(
      Type.Boolean({
        description:
          'If true, a running VM without the QEMU guest agent is copied without freezing its file systems; the image is like a disk after a power failure. If false (the default), the creation of such an image fails with `conflict`.',
      }),
    ),
    ...annotations,
  },
  {
    description: 'Exactly one of `vm_id`, `disk_id` and `snapshot_id` is required.',
    examples: [{ name: 'trainer:v1', vm_id: '0199c6f2-9a1e-7c4b-8f51-6a2f0c1d7b01' }],
  },
)
export type CustomImageCreate = Static<typeof CustomImageCreate>

export const CustomImageUpdate = Type.Object(
  { ...annotations, tags: Type.Optional(ImageTags) },
  {
    additionalProperties: false,
    minProperties: 1,
    description:
      'One or more of description, tags, labels and deletion protection. `tags` and `labels` replace all existing ones.',
    examples: [{ description: 'With CUDA 13' }],
  },
)
export type CustomImageUpdate = Static<typeof CustomImageUpdate>

export const customImageRoutes = defineRoutes({
  customImageCreate: {
    method: 'POST',
    path: '/v0.1/projects/{project_id}/custom-images',
    tag: 'Disks',
    summary: 'Create a custom image from a VM, a disk or a snapshot',
    description:
      'The image has the content that the source had when the operation began, and does not depend on the source afterwards. Until the operation ends, the source cannot be started, stopped, resized or captured again; if its VM is deleted or shuts down, the operation fails. Remove secrets from the VM first: a new VM gets its own host key, machine id and SSH keys, but everything else is copied. Images count toward the organization’s quotas `custom_images` and `captured_gib`.',
    access: 'member',
    costsMoney: true,
    body: CustomImageCreate,
    response: OperationStarted,
    errors: ['already_exists', 'conflict', 'quota_exceeded'],
  },
  customImageList: {
    method: 'GET',
    path: '/v0.1/projects/{project_id}/custom-images',
    tag: 'Disks',
    summary: 'List custom images',
    access: 'viewer',
    query: Type.Object({
      ...pageQuery,
      names: CommaList('Names'),
      name_prefix: Type.Optional(
        Type.String({ maxLength: 127, description: 'Only images whose name starts with this text.' }),
      ),
      ...labelQuery,
    }),
    response: pagedList('CustomImageList', CustomImage),
  },
  customImageGet: {
    method: 'GET',
    path: '/v0.1/projects/{project_id}/custom-images/{custom_image_id}',
    tag: 'Disks',
    summary: 'Read a custom image',
    access: 'viewer',
    response: CustomImage,
  },
  customImageUpdate: {
    method: 'PATCH',
    path: '/v0.1/projects/{project_id}/custom-images/{custom_image_id}',
    tag: 'Disks',
    summary: 'Change the description, tags, labels or deletion protection of a custom image',
    access: 'member',
    body: CustomImageUpdate,
    response: CustomImage,
    errors: ['conflict'],
  },
  customImageDelete: {
    method: 'DELETE',
    path: '/v0.1/projects/{project_id}/custom-images/{custom_image_id}',
    tag: 'Disks',
    summary: 'Delete a custom image',
    description:
      'VMs that were created from the image keep working. The request fails with `conflict` while a VM is being created from the image.',
    access: 'member',
    response: OperationStarted,
    errors: ['protected', 'conflict'],
  },
  customImageOperationList: {
    method: 'GET',
    path: '/v0.1/projects/{project_id}/custom-images/operations',
    tag: 'Disks',
    summary: 'List operations on custom images',
    access: 'viewer',
    query: OperationListQuery,
    response: OperationList,
  },
  customImageOperationGet: {
    method: 'GET',
    path: '/v0.1/projects/{project_id}/custom-images/operations/{operation_id}',
    tag: 'Disks',
    summary: 'Read an operation on a custom image, or wait until it ends',
    access: 'viewer',
    query: OperationWaitQuery,
    response: Operation,
  },
})

import Type, { type Static } from 'typebox'
import {
  Operation,
  OperationList,
  OperationListQuery,
  OperationStarted,
  OperationWaitQuery,
} from '../operations.ts'
import { annotations, InstanceGroup, MemberCount, OnMemberLoss, PlacementPolicy } from '../resources.ts'
import { defineRoutes } from '../route.ts'
import { body, CommaList, labelQuery, pagedList, pageQuery, ResourceName, Uuid } from '../schema.ts'
import { maxGroupNameLength } from '../states.ts'
import { vmFields } from '../vms.ts'

const closed = { additionalProperties: false }
const TemplateId = Type.String({
  ...Uuid,
  description: 'A version of an instance template of the project, from which new members are created.',
})

export const InstanceGroupCreate = body(
  'InstanceGroupCreate',
  {
    name: Type.String({
      ...ResourceName,
      maxLength: maxGroupNameLength,
      description: 'At most 60 characters. The members are named `<name>-1`, `<name>-2` and so on.',
    }),
    desired_count: MemberCount(1),
    template_id: Type.Optional(TemplateId),
    vm: Type.Optional(
      Type.Object(vmFields, {
        ...closed,
        description:
          'The fields of the request that creates each member VM. They replace the same fields of the template. All members of the group are in one location; `any` means the first location where all members fit.',
      }),
    ),
    placement_policy: Type.Optional(PlacementPolicy),
    on_member_loss: Type.Optional(OnMemberLoss),
    ...annotations,
  },
  {
    examples: [
      {
        name: 'trainer',
        desired_count: 4,
        vm: {
          type: 'a100.1x',
          location: 'us-east1-a',
          image: 'ubuntu24.04-nvidia:latest',
          ssh_public_key:
            'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBvmWxvLnVPXnO3xXQ2n3yUoP1yT8kQ5cXqkqN3u9Ckm ada@laptop',
        },
      },
    ],
  },
)
export type InstanceGroupCreate = Static<typeof InstanceGroupCreate>

const GroupAnnotations = Type.Object(annotations, { ...closed, minProperties: 1 })

export const InstanceGroupUpdate = Type.Union(
  [
    Type.Object({ desired_count: MemberCount(0) }, closed),
    Type.Object({ template_id: TemplateId }, closed),
    GroupAnnotations,
  ],
  {
    description:
      'Exactly one of: a new number of members; a template for new members; or one or more of labels, description and deletion protection. If the number grows, either all new members are added or none. If it shrinks, the members with the highest numbers are deleted. `labels` replaces all existing labels. Every change except a new number of members returns an operation that has already succeeded.',
    examples: [{ desired_count: 8 }],
  },
)
export type InstanceGroupUpdate = Static<typeof InstanceGroupUpdate>

export const instanceGroupRoutes = defineRoutes({
  instanceGroupCreate: {
    method: 'POST',
    path: '/v0.1/projects/{project_id}/instance-groups',
    tag: 'VMs',
    summary: 'Create an instance group',
    description:
      'Admits all members or none: when the response arrives, the GPUs, quota, names and addresses of every member are reserved. If not all members fit, the error `out_of_stock` says how many would. The members start running when the last of them responds, and are billed from that time. If the last member has not responded 300 seconds after the first, the members that have responded are billed from then on. Groups count toward the organization’s quota `instance_groups`.',
    access: 'member',
    costsMoney: true,
    body: InstanceGroupCreate,
    response: OperationStarted,
    errors: ['already_exists', 'conflict', 'out_of_stock', 'quota_exceeded'],
  },
  instanceGroupList: {
    method: 'GET',
    path: '/v0.1/projects/{project_id}/instance-groups',
    tag: 'VMs',
    summary: 'List instance groups',
    access: 'viewer',
    query: Type.Object({ ...pageQuery, names: CommaList('Names'), ...labelQuery }),
    response: pagedList('InstanceGroupList', InstanceGroup),
  },
  instanceGroupGet: {
    method: 'GET',
    path: '/v0.1/projects/{project_id}/instance-groups/{instance_group_id}',
    tag: 'VMs',
    summary: 'Read an instance group',
    access: 'viewer',
    response: InstanceGroup,
  },
  instanceGroupUpdate: {
    method: 'PATCH',
    path: '/v0.1/projects/{project_id}/instance-groups/{instance_group_id}',
    tag: 'VMs',
    summary: 'Change the size of an instance group, its template, or its labels and protection',
    isDestructive: true,
    access: 'member',
    body: InstanceGroupUpdate,
    response: OperationStarted,
    errors: [
      'payment_method_required',
      'already_exists',
      'conflict',
      'protected',
      'out_of_stock',
      'quota_exceeded',
    ],
  },
  instanceGroupStart: {
    method: 'POST',
    path: '/v0.1/projects/{project_id}/instance-groups/{instance_group_id}/start',
    tag: 'VMs',
    summary: 'Start the stopped members of an instance group: either all of them or none',
    access: 'member',
    costsMoney: true,
    response: OperationStarted,
    errors: ['conflict', 'out_of_stock', 'quota_exceeded'],
  },
  instanceGroupStop: {
    method: 'POST',
    path: '/v0.1/projects/{project_id}/instance-groups/{instance_group_id}/stop',
    tag: 'VMs',
    summary: 'Stop all members of an instance group',
    isDestructive: true,
    access: 'member',
    response: OperationStarted,
    errors: ['conflict'],
  },
  instanceGroupDelete: {
    method: 'DELETE',
    path: '/v0.1/projects/{project_id}/instance-groups/{instance_group_id}',
    tag: 'VMs',
    summary: 'Delete an instance group and its members',
    description: 'Works in any state. A repeated request returns the same operation.',
    access: 'member',
    query: Type.Object({
      delete_disks: Type.Optional(
        Type.Boolean({
          description: 'Also deletes the disks that were created with the members (`new_disks`).',
        }),
      ),
    }),
    response: OperationStarted,
    errors: ['protected'],
  },
  instanceGroupOperationList: {
    method: 'GET',
    path: '/v0.1/projects/{project_id}/instance-groups/operations',
    tag: 'VMs',
    summary: 'List operations on instance groups',
    access: 'viewer',
    query: OperationListQuery,
    response: OperationList,
  },
  instanceGroupOperationGet: {
    method: 'GET',
    path: '/v0.1/projects/{project_id}/instance-groups/operations/{operation_id}',
    tag: 'VMs',
    summary: 'Read an operation on an instance group, or wait until it ends',
    access: 'viewer',
    query: OperationWaitQuery,
    response: Operation,
  },
})

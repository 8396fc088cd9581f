import Type, { type Static } from 'typebox'
import { PlacementPolicy } from '../resources.ts'
import { defineRoutes } from '../route.ts'
import {
  body,
  CommaList,
  Empty,
  labelQuery,
  pagedList,
  pageQuery,
  ResourceName,
  record,
  Timestamp,
  Uuid,
} from '../schema.ts'
import { vmFields } from '../vms.ts'

const templateFields = { ...vmFields, placement_policy: Type.Optional(PlacementPolicy) }

export const InstanceTemplate = record(
  'InstanceTemplate',
  {
    id: Type.String({ ...Uuid, description: 'The id of this version.' }),
    name: ResourceName,
    version: Type.Integer({ description: 'The version number, counted from 1 for each name.' }),
    project_id: Uuid,
    created_at: Timestamp,
    ...templateFields,
  },
  {
    description:
      'One version of a template, which never changes. Contains only the fields that were set. For viewers and read keys, each script is shown as `sha256:` and its digest.',
  },
)
export type InstanceTemplate = Static<typeof InstanceTemplate>

const Ignored = Type.Optional(Type.Unknown({ description: 'Ignored, so that a template can be sent back.' }))

export const InstanceTemplateCreate = body(
  'InstanceTemplateCreate',
  {
    name: Type.String({ ...ResourceName, description: 'The name of the template, not of its VMs.' }),
    new_version: Type.Optional(
      Type.Boolean({
        description:
          'If `true`, adds a version if the name already exists. Otherwise, the request fails with `already_exists` if the name exists.',
      }),
    ),
    ...templateFields,
    id: Ignored,
    version: Ignored,
    project_id: Ignored,
    created_at: Ignored,
  },
  {
    examples: [
      {
        name: 'trainer',
        type: 'a100.1x',
        location: 'us-east1-a',
        image: 'ubuntu24.04-nvidia:latest',
        startup_script: '#!/bin/sh\nnvidia-smi\n',
        new_disks: [{ size: '100GiB' }],
      },
    ],
  },
)
export type InstanceTemplateCreate = Static<typeof InstanceTemplateCreate>

export const instanceTemplateRoutes = defineRoutes({
  instanceTemplateCreate: {
    method: 'POST',
    path: '/v0.1/projects/{project_id}/instance-templates',
    tag: 'VMs',
    summary: 'Create an instance template, or a new version of one',
    description:
      'A template contains fields of the request that creates a VM. All fields except the name are optional. They are checked against the catalogue when a VM is created from the template. Templates count toward the organization’s quota `instance_templates`.',
    access: 'member',
    body: InstanceTemplateCreate,
    response: InstanceTemplate,
    errors: ['already_exists', 'quota_exceeded'],
  },
  instanceTemplateList: {
    method: 'GET',
    path: '/v0.1/projects/{project_id}/instance-templates',
    tag: 'VMs',
    summary: 'List instance templates',
    access: 'viewer',
    query: Type.Object({
      ...pageQuery,
      names: CommaList('Names'),
      latest: Type.Optional(Type.Boolean({ description: 'Only the latest version of each template.' })),
      ...labelQuery,
    }),
    response: pagedList('InstanceTemplateList', InstanceTemplate),
  },
  instanceTemplateGet: {
    method: 'GET',
    path: '/v0.1/projects/{project_id}/instance-templates/{instance_template_id}',
    tag: 'VMs',
    summary: 'Read a version of an instance template',
    access: 'viewer',
    response: InstanceTemplate,
  },
  instanceTemplateDelete: {
    method: 'DELETE',
    path: '/v0.1/projects/{project_id}/instance-templates/{instance_template_id}',
    tag: 'VMs',
    summary: 'Delete a version of an instance template',
    description: 'Existing VMs and groups are not affected; VMs still show the id of the version.',
    access: 'member',
    response: Empty,
  },
})

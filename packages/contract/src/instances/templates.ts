import Type, { type Static } from 'typebox'
import { PlacementPolicy } from '../resources.ts'
import { defineRoutes } from '../route.ts'
import {
  body,
  CommaList,
  Description,
  Empty,
  Labels,
  labelLimits,
  labelQuery,
  NonEmptyTimestamp,
  pagedList,
  pageQuery,
  ResourceName,
  record,
  Uuid,
} from '../schema.ts'
import { vmTypeNames } from '../vm-types.ts'
import { vmFields } from '../vms.ts'

/** All fields are optional: the request that creates a VM can set the fields that the template does not set. */
const templateFields = {
  ...vmFields,
  type: Type.Optional(
    Type.Enum(vmTypeNames, {
      examples: ['a100.1x'],
      description:
        'A VM type from the catalogue. If the template does not set a type, the request that creates a VM must.',
    }),
  ),
  location: Type.Optional(
    Type.String({
      ...vmFields.location,
      description:
        'A location, or `any` for the first location that has stock, the image, a subnet of the project and the given disks. If the template does not set a location, the request that creates a VM must.',
    }),
  ),
  image: Type.Optional(
    Type.String({
      ...vmFields.image,
      description:
        'The name of an image, for example `ubuntu24.04-nvidia:latest`. If the name does not end in a colon and a version, `:latest` is used. If the template sets neither `image` nor `custom_image`, the request that creates a VM must set one of them.',
    }),
  ),
  ssh_key_ids: Type.Optional(
    Type.Array(Uuid, {
      maxItems: 32,
      uniqueItems: true,
      description:
        'The ids of registered SSH keys, which are installed in addition to `ssh_public_key`. If the template sets no key, the request that creates a VM must.',
    }),
  ),
  labels: Type.Optional(
    Type.Unsafe<Labels>({
      ...Labels,
      description: `The labels of the VMs that are created from the template. Lists of templates can be filtered by these labels. ${labelLimits}`,
    }),
  ),
  description: Type.Optional(
    Type.String({
      ...Description,
      description: 'The description of the VMs that are created from the template.',
    }),
  ),
  deletion_protection: Type.Optional(
    Type.Boolean({
      description:
        'Whether the VMs that are created from the template have deletion protection. The template itself has none.',
    }),
  ),
  placement_policy: Type.Optional(PlacementPolicy),
}

export const InstanceTemplate = record(
  'InstanceTemplate',
  {
    id: Type.String({ ...Uuid, description: 'The id of this version.' }),
    name: ResourceName,
    version: Type.Integer({ description: 'The version number, counted from 1 for each name.' }),
    project_id: Uuid,
    created_at: NonEmptyTimestamp,
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
          'What happens if a template with this name exists: `true` adds a version to it; with `false`, the default, the request fails with `already_exists`.',
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
    description:
      'Existing VMs are not affected, and still show the id of the version. A group that uses the version cannot grow until it has another template.',
    access: 'member',
    response: Empty,
  },
})

import Type, { type Static } from 'typebox'
import { AccessKey, AccessKeyCreated, AllowedCidrs } from '../identity.ts'
import { OperationStarted } from '../operations.ts'
import { defineRoutes } from '../route.ts'
import {
  body,
  CommaList,
  DisplayName,
  Empty,
  Instant,
  PageQuery,
  pagedList,
  pageQuery,
  record,
  Timestamp,
  Uuid,
} from '../schema.ts'
import { HostVm } from './fleet.ts'

/** What operators may do to tenants and to each other. */

export const AdminVm = record('AdminVm', {
  ...HostVm.properties,
  organization_id: Uuid,
  type: Type.String({ examples: ['a100.1x'] }),
  location: Type.String(),
  host_id: Type.String({ description: 'Empty when it is on none.' }),
  created_at: Timestamp,
})
export type AdminVm = Static<typeof AdminVm>

export const adminAccountRoutes = defineRoutes({
  adminVmList: {
    method: 'GET',
    path: '/v0.1/admin/vms',
    tag: 'Operators',
    summary: 'List VMs of all tenants',
    access: 'operator',
    query: Type.Object({ ...pageQuery, organization_id: Type.Optional(Uuid), ids: CommaList('VM ids') }),
    auditsReadOf: ['organization_id'],
    answer: pagedList('AdminVmList', AdminVm),
  },
  adminVmStop: {
    method: 'POST',
    path: '/v0.1/admin/vms/{vm_id}/stop',
    tag: 'Operators',
    summary: 'Stop a tenant’s VM',
    isDestructive: true,
    access: 'operator',
    answer: OperationStarted,
    errors: ['conflict'],
  },
  adminVmDelete: {
    method: 'DELETE',
    path: '/v0.1/admin/vms/{vm_id}',
    tag: 'Operators',
    summary: 'Delete a tenant’s VM',
    access: 'operator',
    answer: OperationStarted,
  },
  adminUserReset: {
    method: 'POST',
    path: '/v0.1/admin/users/{user_id}/reset',
    tag: 'Operators',
    summary: 'Make a link by which a user sets a new password',
    description: 'It works once and for an hour; links before it no longer work.',
    access: 'operator',
    answer: record('ResetLink', {
      reset_url: Type.String({ description: 'Shown this once: for the user alone.' }),
      expires_at: Timestamp,
    }),
    errors: ['conflict'],
    noStore: true,
  },
  adminUserTotpDelete: {
    method: 'DELETE',
    path: '/v0.1/admin/users/{user_id}/totp',
    tag: 'Operators',
    summary: 'Remove a user’s second factor',
    description:
      'For a user who has lost it together with the recovery codes. Ends all sessions of the user.',
    access: 'operator',
    answer: Empty,
    errors: ['conflict'],
  },
  adminKeyList: {
    method: 'GET',
    path: '/v0.1/admin/keys',
    tag: 'Operators',
    summary: 'List operator keys',
    access: 'operator',
    query: PageQuery,
    answer: pagedList('OperatorKeyList', AccessKey),
  },
  adminKeyCreate: {
    method: 'POST',
    path: '/v0.1/admin/keys',
    tag: 'Operators',
    summary: 'Create an operator key',
    description: 'The answer alone contains the secret.',
    access: 'operator',
    body: body('OperatorKeyCreate', {
      name: DisplayName,
      expires_at: Type.Optional(Instant),
      allowed_cidrs: Type.Optional(AllowedCidrs),
    }),
    answer: AccessKeyCreated,
    noStore: true,
  },
  adminKeyDelete: {
    method: 'DELETE',
    path: '/v0.1/admin/keys/{key_id}',
    tag: 'Operators',
    summary: 'Revoke an operator key',
    access: 'operator',
    answer: Empty,
  },
})

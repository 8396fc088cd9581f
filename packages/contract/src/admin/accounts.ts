import Type, { type Static } from 'typebox'
import {
  AccessKey,
  AccessKeyCreated,
  AccessKeyRevoked,
  AllowedCidrs,
  childKeyDescription,
  RevokeKeyQuery,
} from '../identity/records.ts'
import { OperationStarted } from '../operations.ts'
import { defineRoutes } from '../route.ts'
import {
  body,
  CommaList,
  DisplayName,
  Empty,
  Instant,
  NonEmptyTimestamp,
  PageQuery,
  pagedList,
  pageQuery,
  record,
  Timestamp,
  Uuid,
} from '../schema.ts'
import { HostVm } from './fleet.ts'

/** Operator routes for tenants' VMs, user accounts and operator keys. */

export const AdminVm = record('AdminVm', {
  ...HostVm.properties,
  organization_id: Uuid,
  type: Type.String({ examples: ['a100.1x'] }),
  location: Type.String(),
  host_id: Type.String({ description: 'Empty if the VM is not on a host.' }),
  created_at: NonEmptyTimestamp,
})
export type AdminVm = Static<typeof AdminVm>

export const adminAccountRoutes = defineRoutes({
  adminVmList: {
    method: 'GET',
    path: '/v0.1/admin/vms',
    tag: 'Operators',
    summary: 'List VMs of all tenants',
    access: 'operator',
    query: Type.Object({
      ...pageQuery,
      organization_id: Type.Optional(Type.String({ ...Uuid, description: 'Only VMs of this organization.' })),
      ids: CommaList('VM ids'),
    }),
    response: pagedList('AdminVmList', AdminVm),
  },
  adminVmStop: {
    method: 'POST',
    path: '/v0.1/admin/vms/{vm_id}/stop',
    tag: 'Operators',
    summary: 'Stop a tenant’s VM',
    isDestructive: true,
    access: 'operator',
    response: OperationStarted,
    errors: ['conflict'],
  },
  adminVmDelete: {
    method: 'DELETE',
    path: '/v0.1/admin/vms/{vm_id}',
    tag: 'Operators',
    summary: 'Delete a tenant’s VM',
    access: 'operator',
    response: OperationStarted,
  },
  adminUserReset: {
    method: 'POST',
    path: '/v0.1/admin/users/{user_id}/reset',
    tag: 'Operators',
    summary: 'Create a password reset link for a user',
    description: 'The link works once, within one hour. Earlier links stop working.',
    access: 'operator',
    response: record('ResetLink', {
      reset_url: Type.String({ description: 'Only this response shows the link. Send it only to the user.' }),
      expires_at: Timestamp,
    }),
    errors: ['conflict'],
    noStore: true,
  },
  adminUserTotpDelete: {
    method: 'DELETE',
    path: '/v0.1/admin/users/{user_id}/totp',
    tag: 'Operators',
    summary: 'Remove a user’s two-factor authentication',
    description:
      'Use this for a user who lost both the authenticator app and the recovery codes. Ends all sessions of the user.',
    access: 'operator',
    response: Empty,
    errors: ['conflict'],
  },
  adminKeyList: {
    method: 'GET',
    path: '/v0.1/admin/keys',
    tag: 'Operators',
    summary: 'List operator keys',
    access: 'operator',
    query: PageQuery,
    response: pagedList('OperatorKeyList', AccessKey),
  },
  adminKeyCreate: {
    method: 'POST',
    path: '/v0.1/admin/keys',
    tag: 'Operators',
    summary: 'Create an operator key',
    description: `Only this response contains the secret. ${childKeyDescription}`,
    access: 'operator',
    body: body('OperatorKeyCreate', {
      name: DisplayName,
      expires_at: Type.Optional(Instant),
      allowed_cidrs: Type.Optional(AllowedCidrs),
    }),
    response: AccessKeyCreated,
    noStore: true,
  },
  adminKeyDelete: {
    method: 'DELETE',
    path: '/v0.1/admin/keys/{key_id}',
    tag: 'Operators',
    summary: 'Revoke an operator key',
    access: 'operator',
    query: RevokeKeyQuery,
    response: AccessKeyRevoked,
  },
})

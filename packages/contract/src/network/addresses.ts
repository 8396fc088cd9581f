import Type, { type Static } from 'typebox'
import { OperationStarted } from '../operations.ts'
import { defineRoutes } from '../route.ts'
import {
  body,
  Empty,
  Labels,
  labelQuery,
  NonEmptyTimestamp,
  pagedList,
  pageQuery,
  ResourceName,
  record,
  Uuid,
} from '../schema.ts'

export const Address = record(
  'Address',
  {
    id: Type.String({
      ...Uuid,
      description: 'The VM that has the address shows the same id in `public_ipv4`.',
    }),
    name: Type.String(),
    address: Type.String({ examples: ['198.18.3.7'] }),
    location: Type.String(),
    type: Type.Literal('static'),
    vm_id: Type.String({ description: 'The VM that has the address. Empty if no VM has the address.' }),
    labels: Labels,
    created_at: NonEmptyTimestamp,
  },
  { description: 'A public IPv4 address that belongs to the project until it is released.' },
)
export type Address = Static<typeof Address>

export const AddressCreate = body(
  'AddressCreate',
  {
    name: ResourceName,
    location: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 100,
        description:
          'Reserves a free address in this location. Exactly one of `location` and `vm_id` is required.',
      }),
    ),
    vm_id: Type.Optional(
      Type.String({
        ...Uuid,
        description: 'Reserves the current dynamic address of this VM. The VM keeps the address.',
      }),
    ),
    labels: Type.Optional(Labels),
  },
  { examples: [{ name: 'gateway', location: 'us-east1-a' }] },
)
export type AddressCreate = Static<typeof AddressCreate>

const path = '/v0.1/projects/{project_id}/vpc/addresses'

export const addressRoutes = defineRoutes({
  addressList: {
    method: 'GET',
    path,
    tag: 'VPC',
    summary: 'List reserved addresses',
    access: 'viewer',
    query: Type.Object({ ...pageQuery, ...labelQuery }),
    response: pagedList('AddressList', Address),
  },
  addressCreate: {
    method: 'POST',
    path,
    tag: 'VPC',
    summary: 'Reserve a public address',
    description:
      'The address is kept when a VM that uses it is deleted. It is billed as `reserved-address` while no VM has it or its VM is not billed, but not while the billing of its VM is paused because of a lost GPU. Reserved addresses count toward the organization’s quota `reserved_addresses`.',
    access: 'member',
    costsMoney: true,
    body: AddressCreate,
    response: Address,
    errors: ['already_exists', 'conflict', 'out_of_stock', 'quota_exceeded'],
  },
  addressGet: {
    method: 'GET',
    path: `${path}/{address_id}`,
    tag: 'VPC',
    summary: 'Read a reserved address',
    access: 'viewer',
    response: Address,
  },
  addressUpdate: {
    method: 'PATCH',
    path: `${path}/{address_id}`,
    tag: 'VPC',
    summary: 'Rename a reserved address, or replace its labels',
    access: 'member',
    body: body('AddressUpdate', { name: Type.Optional(ResourceName), labels: Type.Optional(Labels) }),
    response: Address,
    errors: ['already_exists'],
  },
  addressDelete: {
    method: 'DELETE',
    path: `${path}/{address_id}`,
    tag: 'VPC',
    summary: 'Release a reserved address',
    description:
      'The request fails while a VM has the address. After the release, any new VM in the location can get the address.',
    access: 'member',
    response: Empty,
    errors: ['conflict'],
  },
  addressAssign: {
    method: 'POST',
    path: `${path}/{address_id}/assign`,
    tag: 'VPC',
    summary: 'Assign a reserved address to a VM',
    description:
      'The address replaces the VM’s public address. If the replaced address is reserved, it stays reserved without a VM. If another VM uses the new address, that VM gets a dynamic address first. Open connections to the replaced addresses are closed. The response contains an operation of the VM with the name `UPDATE`.',
    isDestructive: true,
    access: 'member',
    body: body('AddressAssign', { vm_id: Uuid }),
    response: OperationStarted,
    errors: ['conflict', 'out_of_stock'],
  },
  addressUnassign: {
    method: 'POST',
    path: `${path}/{address_id}/unassign`,
    tag: 'VPC',
    summary: 'Unassign a reserved address from its VM',
    description:
      'The VM gets a dynamic address instead. The response contains an operation of the VM with the name `UPDATE`.',
    isDestructive: true,
    access: 'member',
    query: Type.Object({
      vm_id: Type.Optional(
        Type.String({ ...Uuid, description: 'If set, the request fails if another VM has the address.' }),
      ),
    }),
    response: OperationStarted,
    errors: ['conflict', 'out_of_stock'],
  },
})

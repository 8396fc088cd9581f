import { cidrContains } from '@slipway/contract'
import { Failure, invalidField, notFound } from '../domain/failure.ts'
import { uuid } from '../domain/ids.ts'
import { type ProjectRequester, requireOrganizationQuota } from '../operations/admission.ts'
import { requireLocation } from '../operations/catalogue.ts'
import type { Tx } from '../postgres/database.ts'
import { emit } from '../store/events/events.ts'
import {
  countSubnetVms,
  deleteSubnetRow,
  findSubnet,
  insertSubnet,
  lockSubnet,
  type SubnetRow,
  setSubnetName,
} from '../store/network/networks.ts'
import { checkBlock, lockAndReadNetwork, type NewBlock, writeUniqueBlock } from './networks.ts'

export interface NewSubnet extends NewBlock {
  vpc_network_id: string
  location: string
}

export async function createSubnet(tx: Tx, by: ProjectRequester, subnet: NewSubnet): Promise<SubnetRow> {
  checkBlock(subnet.cidr)
  const { projectId } = by
  const { name, cidr, location } = subnet
  await requireLocation(tx, location)
  const network = await lockAndReadNetwork(tx, projectId, subnet.vpc_network_id)
  if (!network) throw invalidField('vpc_network_id', 'must be a network of this project')
  if (!cidrContains(network.cidr, cidr))
    throw invalidField('cidr', `must be inside the network's block ${network.cidr}`)
  const id = uuid()
  await writeUniqueBlock('subnet', subnet, () =>
    insertSubnet(tx, { id, projectId, networkId: network.id, name, cidr, location }),
  )
  await requireOrganizationQuota(tx, by, 'subnets')
  await emit(tx, {
    ...by,
    type: 'subnet.created',
    resourceType: 'subnet',
    resourceId: id,
    data: { ...subnet },
  })
  return (await findSubnet(tx, projectId, id))!
}

export async function renameSubnet(
  tx: Tx,
  by: ProjectRequester,
  id: string,
  name: string,
): Promise<SubnetRow> {
  await lockSubnet(tx, by.projectId, id)
  const subnet = await findSubnet(tx, by.projectId, id)
  if (!subnet) throw notFound('subnet')
  const renamed = { ...subnet, name }
  await writeUniqueBlock('subnet', renamed, () => setSubnetName(tx, id, name))
  const data = { name }
  await emit(tx, { ...by, type: 'subnet.updated', resourceType: 'subnet', resourceId: id, data })
  return renamed
}

export async function deleteSubnet(tx: Tx, by: ProjectRequester, id: string): Promise<void> {
  await lockSubnet(tx, by.projectId, id)
  const subnet = await findSubnet(tx, by.projectId, id)
  if (!subnet) throw notFound('subnet')
  if ((await countSubnetVms(tx, subnet.id)) > 0)
    throw new Failure('conflict', 'The subnet has VMs. Delete them first.')
  await deleteSubnetRow(tx, subnet.id)
  const data = { name: subnet.name }
  await emit(tx, { ...by, type: 'subnet.deleted', resourceType: 'subnet', resourceId: subnet.id, data })
}

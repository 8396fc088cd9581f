import { type Labels, parseCidr } from '@slipway/contract'
import { isPrivateCidr } from '../domain/addresses.ts'
import { Failure, invalidField, nameTaken, notFound } from '../domain/failure.ts'
import { uuid } from '../domain/ids.ts'
import { type ProjectRequester, requireOrganizationQuota } from '../operations/admission.ts'
import { type Tx, violatedConstraint } from '../postgres/database.ts'
import { emit } from '../store/events/events.ts'
import {
  countNetworkRules,
  deleteNetworkRow,
  findNetwork,
  insertNetwork,
  lockNetwork,
  type NetworkRow,
  updateNetwork,
} from '../store/network/networks.ts'

export interface NewBlock {
  name: string
  cidr: string
}

export interface NewNetwork extends NewBlock {
  labels?: Labels
}

export async function createNetwork(tx: Tx, by: ProjectRequester, network: NewNetwork): Promise<NetworkRow> {
  checkBlock(network.cidr)
  const id = uuid()
  const row = { ...network, labels: network.labels ?? {} }
  await writeUniqueBlock('network', network, () => insertNetwork(tx, { id, projectId: by.projectId, ...row }))
  await requireOrganizationQuota(tx, by, 'networks')
  await emit(tx, { ...by, type: 'network.created', resourceType: 'network', resourceId: id, data: row })
  return (await findNetwork(tx, by.projectId, id))!
}

export async function changeNetwork(
  tx: Tx,
  by: ProjectRequester,
  id: string,
  change: { name?: string; labels?: Labels },
): Promise<NetworkRow> {
  if (Object.keys(change).length === 0)
    throw new Failure('invalid_argument', 'The body is empty. Send at least one field to change.')
  const network = await lockAndReadNetwork(tx, by.projectId, id)
  if (!network) throw notFound('network')
  const changed = { ...network, ...change }
  await writeUniqueBlock('network', changed, () => updateNetwork(tx, id, change))
  const data = { name: changed.name, labels: changed.labels }
  await emit(tx, { ...by, type: 'network.updated', resourceType: 'network', resourceId: id, data })
  return changed
}

export async function deleteNetwork(tx: Tx, by: ProjectRequester, id: string): Promise<void> {
  const network = await lockAndReadNetwork(tx, by.projectId, id)
  if (!network) throw notFound('network')
  if (network.subnets.length > 0) throw new Failure('conflict', 'The network has subnets. Delete them first.')
  if ((await countNetworkRules(tx, network.id)) > 0)
    throw new Failure('conflict', 'The network has firewall rules. Delete them first.')
  await deleteNetworkRow(tx, network.id)
  const data = { name: network.name, labels: network.labels }
  await emit(tx, { ...by, type: 'network.deleted', resourceType: 'network', resourceId: network.id, data })
}

export async function lockAndReadNetwork(
  tx: Tx,
  projectId: string,
  id: string,
): Promise<NetworkRow | undefined> {
  await lockNetwork(tx, projectId, id)
  return findNetwork(tx, projectId, id)
}

export function checkBlock(cidr: string): void {
  const block = cidr.includes('/') ? parseCidr(cidr) : null
  if (!block)
    throw invalidField('cidr', 'must be an IPv4 block whose host bits are all zero, such as 10.20.0.0/16')
  if (!isPrivateCidr(cidr))
    throw invalidField('cidr', 'must be inside 10.0.0.0/8, 172.16.0.0/12 or 192.168.0.0/16')
  if (block.prefix < 16 || block.prefix > 28) throw invalidField('cidr', 'must be /16 to /28')
}

/** Runs a write. Throws a 409 error if the name is taken or the block overlaps with another one. */
export async function writeUniqueBlock<T>(what: string, body: NewBlock, write: () => Promise<T>): Promise<T> {
  try {
    return await write()
  } catch (error) {
    const constraint = violatedConstraint(error)
    if (constraint?.endsWith('_name_key')) throw nameTaken(what, body.name)
    if (constraint?.endsWith('_excl'))
      throw new Failure('conflict', `${body.cidr} overlaps with another ${what}. Choose another block.`)
    throw error
  }
}

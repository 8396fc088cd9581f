import { type Labels, parseCidr } from '@slipway/contract'
import { isPrivateCidr } from '../domain/addresses.ts'
import { Failure, invalidField, notFound } from '../domain/failure.ts'
import { uuid } from '../domain/ids.ts'
import { type ProjectRequester, requireRoom } from '../operations/admission.ts'
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
  await orConflict('network', network, () => insertNetwork(tx, { id, projectId: by.projectId, ...row }))
  await requireRoom(tx, by, 'networks')
  await emit(tx, {
    ...by,
    type: 'network.created',
    resourceType: 'network',
    resourceId: id,
    data: row,
  })
  return (await findNetwork(tx, by.projectId, id))!
}

export async function changeNetwork(
  tx: Tx,
  by: ProjectRequester,
  id: string,
  change: { name?: string; labels?: Labels },
): Promise<NetworkRow> {
  if (Object.keys(change).length === 0)
    throw new Failure('invalid_argument', 'Name at least one member to change.')
  const network = await lockedNetwork(tx, by.projectId, id)
  if (!network) throw notFound('network')
  await orConflict('network', { ...network, ...change }, () => updateNetwork(tx, id, change))
  const changed = { ...network, ...change }
  await emit(tx, {
    ...by,
    type: 'network.updated',
    resourceType: 'network',
    resourceId: id,
    data: { name: changed.name, labels: changed.labels },
  })
  return changed
}

/** Only when nothing is left in it. */
export async function deleteNetwork(tx: Tx, by: ProjectRequester, id: string): Promise<void> {
  const network = await lockedNetwork(tx, by.projectId, id)
  if (!network) throw notFound('network')
  if (network.subnets.length > 0) throw new Failure('conflict', 'The network has subnets: delete them first.')
  if ((await countNetworkRules(tx, network.id)) > 0)
    throw new Failure('conflict', 'The network has firewall rules: delete them first.')
  await deleteNetworkRow(tx, network.id)
  await emit(tx, {
    ...by,
    type: 'network.deleted',
    resourceType: 'network',
    resourceId: network.id,
    data: { name: network.name, labels: network.labels },
  })
}

export async function lockedNetwork(tx: Tx, projectId: string, id: string): Promise<NetworkRow | undefined> {
  await lockNetwork(tx, projectId, id)
  return findNetwork(tx, projectId, id)
}

export function checkBlock(cidr: string): void {
  const block = cidr.includes('/') ? parseCidr(cidr) : null
  if (!block) throw invalidField('cidr', 'must be an IPv4 block with zero host bits, such as 10.20.0.0/16')
  if (!isPrivateCidr(cidr))
    throw invalidField('cidr', 'must lie in 10.0.0.0/8, 172.16.0.0/12 or 192.168.0.0/16')
  if (block.prefix < 16 || block.prefix > 28) throw invalidField('cidr', 'must be /16 to /28')
}

/** A name taken, or a block that overlaps: the schema knows. */
export async function orConflict<T>(what: string, body: NewBlock, write: () => Promise<T>): Promise<T> {
  try {
    return await write()
  } catch (error) {
    const constraint = violatedConstraint(error)
    if (constraint?.endsWith('_name_key'))
      throw new Failure(
        'already_exists',
        `There is already a ${what} called ${body.name}: choose another name.`,
      )
    if (constraint?.endsWith('_excl'))
      throw new Failure('conflict', `${body.cidr} overlaps another ${what}: choose another block.`)
    throw error
  }
}

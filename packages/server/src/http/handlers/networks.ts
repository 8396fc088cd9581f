import { cidrContains, isPrivateCidr, parseCidr } from '../../domain/addresses.ts'
import { Failure, invalidField, notFound } from '../../domain/failure.ts'
import { uuid } from '../../domain/ids.ts'
import { violatedConstraint } from '../../store/database.ts'
import { findLocation } from '../../store/fleet/locations.ts'
import {
  countNetworkRules,
  countSubnetVms,
  deleteNetworkRow,
  deleteSubnetRow,
  findNetwork,
  findSubnet,
  insertNetwork,
  insertSubnet,
  listNetworks,
  listSubnets,
  lockNetwork,
  lockSubnet,
} from '../../store/network/networks.ts'
import { networkView, subnetView } from '../../views/network.ts'
import type { Handlers } from '../context.ts'
import { pageLimit, readPageToken, toPage } from '../pages.ts'

function checkBlock(cidr: string): void {
  const block = cidr.includes('/') ? parseCidr(cidr) : null
  if (!block) throw invalidField('cidr', 'must be an IPv4 block with zero host bits, such as 10.20.0.0/16')
  if (!isPrivateCidr(cidr))
    throw invalidField('cidr', 'must lie in 10.0.0.0/8, 172.16.0.0/12 or 192.168.0.0/16')
  if (block.prefix < 16 || block.prefix > 28) throw invalidField('cidr', 'must be /16 to /28')
}

/** A name taken, or a block that overlaps: the schema knows. */
async function orConflict<T>(
  what: string,
  body: { name: string; cidr: string },
  write: () => Promise<T>,
): Promise<T> {
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

export const networkHandlers: Handlers<
  | 'networkList'
  | 'networkCreate'
  | 'networkGet'
  | 'networkDelete'
  | 'subnetList'
  | 'subnetCreate'
  | 'subnetGet'
  | 'subnetDelete'
> = {
  async networkList({ tx, project, query }) {
    const key = `networks ${project.projectId}`
    const limit = pageLimit(query)
    const rows = await listNetworks(tx, project.projectId, readPageToken(key, query.page_token), limit + 1)
    return toPage(key, rows, limit, (row) => row.id, networkView)
  },

  async networkCreate({ tx, project, body, audit }) {
    checkBlock(body.cidr)
    const id = uuid()
    await orConflict('network', body, () => insertNetwork(tx, id, project.projectId, body.name, body.cidr))
    await audit({ type: 'network.created', resourceType: 'network', resourceId: id, data: body })
    return networkView((await findNetwork(tx, project.projectId, id))!)
  },

  async networkGet({ tx, project, params }) {
    const network = await findNetwork(tx, project.projectId, params.network_id)
    if (!network) throw notFound('network')
    return networkView(network)
  },

  async networkDelete({ tx, project, params, audit }) {
    await lockNetwork(tx, project.projectId, params.network_id)
    const network = await findNetwork(tx, project.projectId, params.network_id)
    if (!network) throw notFound('network')
    if (network.subnets.length > 0)
      throw new Failure('conflict', 'The network has subnets: delete them first.')
    if ((await countNetworkRules(tx, network.id)) > 0)
      throw new Failure('conflict', 'The network has firewall rules: delete them first.')
    await deleteNetworkRow(tx, network.id)
    await audit({
      type: 'network.deleted',
      resourceType: 'network',
      resourceId: network.id,
      data: { name: network.name },
    })
    return {}
  },

  async subnetList({ tx, project, query }) {
    const key = `subnets ${project.projectId}`
    const limit = pageLimit(query)
    const rows = await listSubnets(tx, project.projectId, readPageToken(key, query.page_token), limit + 1)
    return toPage(key, rows, limit, (row) => row.id, subnetView)
  },

  async subnetCreate({ tx, project, body, audit }) {
    checkBlock(body.cidr)
    if (!(await findLocation(tx, body.location))) throw invalidField('location', 'is not a location')
    await lockNetwork(tx, project.projectId, body.vpc_network_id)
    const network = await findNetwork(tx, project.projectId, body.vpc_network_id)
    if (!network) throw invalidField('vpc_network_id', 'is not a network of this project')
    if (!cidrContains(network.cidr, body.cidr))
      throw invalidField('cidr', `must lie inside the network’s ${network.cidr}`)
    const id = uuid()
    const { name, cidr, location } = body
    await orConflict('subnet', body, () =>
      insertSubnet(tx, { id, projectId: project.projectId, networkId: network.id, name, cidr, location }),
    )
    await audit({ type: 'subnet.created', resourceType: 'subnet', resourceId: id, data: body })
    return subnetView((await findSubnet(tx, project.projectId, id))!)
  },

  async subnetGet({ tx, project, params }) {
    const subnet = await findSubnet(tx, project.projectId, params.subnet_id)
    if (!subnet) throw notFound('subnet')
    return subnetView(subnet)
  },

  async subnetDelete({ tx, project, params, audit }) {
    await lockSubnet(tx, project.projectId, params.subnet_id)
    const subnet = await findSubnet(tx, project.projectId, params.subnet_id)
    if (!subnet) throw notFound('subnet')
    if ((await countSubnetVms(tx, subnet.id)) > 0)
      throw new Failure('conflict', 'The subnet has VMs: delete them first.')
    await deleteSubnetRow(tx, subnet.id)
    await audit({
      type: 'subnet.deleted',
      resourceType: 'subnet',
      resourceId: subnet.id,
      data: { name: subnet.name },
    })
    return {}
  },
}

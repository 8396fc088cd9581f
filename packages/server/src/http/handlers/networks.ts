import { notFound } from '../../domain/failure.ts'
import { changeNetwork, createNetwork, deleteNetwork } from '../../networks/networks.ts'
import { createSubnet, deleteSubnet } from '../../networks/subnets.ts'
import { findNetwork, findSubnet, listNetworks, listSubnets } from '../../store/network/networks.ts'
import { networkView, subnetView } from '../../views/network.ts'
import type { Handlers } from '../context.ts'
import { labelFilter } from '../filters.ts'
import { pageById } from '../pages.ts'

export const networkHandlers: Handlers<
  | 'networkList'
  | 'networkCreate'
  | 'networkGet'
  | 'networkUpdate'
  | 'networkDelete'
  | 'subnetList'
  | 'subnetCreate'
  | 'subnetGet'
  | 'subnetDelete'
> = {
  networkList(context) {
    const { tx, project, query } = context
    const filter = { projectId: project.projectId, labels: labelFilter(query) }
    const read = (before: string | null, limit: number) => listNetworks(tx, filter, before, limit)
    return pageById(context, read, networkView)
  },

  networkCreate: async ({ tx, by, body }) => networkView(await createNetwork(tx, by, body)),

  async networkGet({ tx, project, params }) {
    const network = await findNetwork(tx, project.projectId, params.network_id)
    if (!network) throw notFound('network')
    return networkView(network)
  },

  networkUpdate: async ({ tx, by, params, body }) =>
    networkView(await changeNetwork(tx, by, params.network_id, body)),

  async networkDelete({ tx, by, params }) {
    await deleteNetwork(tx, by, params.network_id)
    return {}
  },

  subnetList(context) {
    const { tx, project } = context
    const read = (before: string | null, limit: number) => listSubnets(tx, project.projectId, before, limit)
    return pageById(context, read, subnetView)
  },

  subnetCreate: async ({ tx, by, body }) => subnetView(await createSubnet(tx, by, body)),

  async subnetGet({ tx, project, params }) {
    const subnet = await findSubnet(tx, project.projectId, params.subnet_id)
    if (!subnet) throw notFound('subnet')
    return subnetView(subnet)
  },

  async subnetDelete({ tx, by, params }) {
    await deleteSubnet(tx, by, params.subnet_id)
    return {}
  },
}

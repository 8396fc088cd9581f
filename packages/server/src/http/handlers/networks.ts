import { requireFound } from '../../domain/failure.ts'
import { changeNetwork, createNetwork, deleteNetwork } from '../../networks/networks.ts'
import { createSubnet, deleteSubnet, renameSubnet } from '../../networks/subnets.ts'
import { findNetwork, findSubnet, listNetworks, listSubnets } from '../../store/network/networks.ts'
import { networkView, subnetView } from '../../views/network.ts'
import { emptyResponse, type Handlers } from '../context.ts'
import { labelFilter } from '../filters.ts'
import { pageById } from '../pages.ts'

export const networkHandlers = {
  networkList(context) {
    const filter = { projectId: context.project.projectId, labels: labelFilter(context.query) }
    return pageById(context, (...page) => listNetworks(context.tx, filter, ...page), networkView)
  },

  networkCreate: async ({ tx, by, body }) => networkView(await createNetwork(tx, by, body)),

  networkGet: async ({ tx, project, params }) =>
    networkView(requireFound('network', await findNetwork(tx, project.projectId, params.network_id))),

  networkUpdate: async ({ tx, by, params, body }) =>
    networkView(await changeNetwork(tx, by, params.network_id, body)),

  networkDelete: ({ tx, by, params }) => emptyResponse(deleteNetwork(tx, by, params.network_id)),

  subnetList: (context) =>
    pageById(context, (...page) => listSubnets(context.tx, context.project.projectId, ...page), subnetView),

  subnetCreate: async ({ tx, by, body }) => subnetView(await createSubnet(tx, by, body)),

  subnetGet: async ({ tx, project, params }) =>
    subnetView(requireFound('subnet', await findSubnet(tx, project.projectId, params.subnet_id))),

  subnetUpdate: async ({ tx, by, params, body }) =>
    subnetView(await renameSubnet(tx, by, params.subnet_id, body.name)),

  subnetDelete: ({ tx, by, params }) => emptyResponse(deleteSubnet(tx, by, params.subnet_id)),
} satisfies Partial<Handlers>

import type { QuotaName } from '@slipway/contract'
import { subnetFor } from '../domain/addresses.ts'
import { Failure } from '../domain/failure.ts'
import { uuid } from '../domain/ids.ts'
import { type Tx, violatedConstraint } from '../store/database.ts'
import {
  countDefaultRules,
  type DefaultRule,
  insertDefaultNetwork,
  insertDefaultRule,
  insertDefaultSubnet,
  locationsInOrder,
} from '../store/project-network.ts'
import { insertProject, insertProjectQuotas, type ProjectRow } from '../store/projects.ts'

const networkName = 'default-vpc-network'
const networkCidr = '172.27.0.0/16'
const subnetPrefix = 20
/** As many blocks of that size as the network has; further locations get a subnet when someone makes one. */
const mostSubnets = 16

export interface NewProject {
  organizationId: string
  name: string
  quotas: Record<QuotaName, number>
}

/** A project that VMs can be created in at once: quotas, a network, a subnet per location, default rules. */
export async function createProject(
  tx: Tx,
  { organizationId, name, quotas }: NewProject,
): Promise<ProjectRow> {
  const project = await insertProject(tx, uuid(), organizationId, name).catch((error) => {
    throw nameTaken(error)
  })
  await insertProjectQuotas(tx, project.id, quotas)
  const network = { id: uuid(), projectId: project.id, name: networkName, cidr: networkCidr }
  await insertDefaultNetwork(tx, network)
  const locations = await locationsInOrder(tx)
  for (const [index, location] of locations.slice(0, mostSubnets).entries()) {
    const cidr = subnetFor(networkCidr, index, subnetPrefix)
    await insertDefaultSubnet(tx, network, { id: uuid(), name: `default-subnet-${location}`, cidr, location })
  }
  for (const rule of defaultRules(network.id)) await insertDefaultRule(tx, network, rule)
  await countDefaultRules(tx, project.id)
  return project
}

/** Turns a clash of names into its answer; everything else stays what it is. */
export function nameTaken(error: unknown): unknown {
  return violatedConstraint(error) === 'projects_name'
    ? new Failure('already_exists', 'The organization has a project of this name: choose another.')
    : error
}

function defaultRules(networkId: string): DefaultRule[] {
  const anywhere = [{ resource_id: '', cidr: '0.0.0.0/0' }]
  const network = [{ resource_id: networkId, cidr: '' }]
  const all = { destinationPorts: [], protocols: ['tcp', 'udp', 'icmp'] }
  return [
    {
      id: uuid(),
      name: 'allow-ssh',
      direction: 'ingress',
      sources: anywhere,
      destinations: network,
      destinationPorts: ['22'],
      protocols: ['tcp'],
    },
    // A rule has one direction: inside the network takes two.
    {
      id: uuid(),
      name: 'allow-internal',
      direction: 'ingress',
      sources: network,
      destinations: network,
      ...all,
    },
    {
      id: uuid(),
      name: 'allow-internal-egress',
      direction: 'egress',
      sources: network,
      destinations: network,
      ...all,
    },
    {
      id: uuid(),
      name: 'allow-egress',
      direction: 'egress',
      sources: network,
      destinations: anywhere,
      ...all,
    },
  ]
}

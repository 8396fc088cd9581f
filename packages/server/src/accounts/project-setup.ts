import { type Labels, quotaNames } from '@slipway/contract'
import { firstNetworkCidr, subnetFor } from '../domain/addresses.ts'
import { Failure } from '../domain/failure.ts'
import { uuid } from '../domain/ids.ts'
import { requireOrganizationQuota, requireQuota } from '../operations/admission.ts'
import { type Tx, violatedConstraint } from '../postgres/database.ts'
import { setQuotas } from '../store/compute/quotas.ts'
import { insertProject, listLocationNames, type ProjectRow } from '../store/identity/projects.ts'
import { insertNetwork, insertSubnet } from '../store/network/networks.ts'
import { insertRule, type NewRule } from '../store/network/rules.ts'

const networkName = 'default-vpc-network'
const subnetPrefix = 20
/** The number of /20 blocks in the network. Locations beyond this number get no default subnet. */
const maxSubnets = 16

export interface NewProject {
  organizationId: string
  name: string
  labels?: Labels
}

/** Creates a project with a network, a subnet per location and default rules, but without its own quotas. */
export async function setUpProject(
  tx: Tx,
  { organizationId, name, labels = {} }: NewProject,
): Promise<ProjectRow> {
  const project = await insertProject(tx, { id: uuid(), organizationId, name, labels }).catch(refuseTakenName)
  await setQuotas(
    tx,
    project.id,
    quotaNames.map((each) => ({ name: each, max: null })),
  )
  const ruleCount = await setUpNetwork(tx, project.id)
  await requireOrganizationQuota(tx, { organizationId }, 'projects', 'networks', 'subnets')
  await requireQuota(tx, project.id, { firewall_rules: ruleCount })
  return project
}

/** Creates the default network of a project, a subnet per location and the default rules. Returns the number of rules. */
export async function setUpNetwork(tx: Tx, projectId: string): Promise<number> {
  const networkId = uuid()
  await insertNetwork(tx, {
    id: networkId,
    projectId,
    name: networkName,
    cidr: firstNetworkCidr,
    labels: {},
  })
  const locations = await listLocationNames(tx)
  for (const [index, location] of locations.slice(0, maxSubnets).entries())
    await insertSubnet(tx, {
      id: uuid(),
      projectId,
      networkId,
      name: `default-subnet-${location}`,
      cidr: subnetFor(firstNetworkCidr, index, subnetPrefix),
      location,
    })
  const rules = defaultRules(projectId, networkId)
  for (const rule of rules) await insertRule(tx, rule)
  return rules.length
}

/** Turns a violation of the unique name into a 409, and rethrows other errors. */
export function refuseTakenName(error: unknown): never {
  throw violatedConstraint(error) === 'projects_name'
    ? new Failure(
        'already_exists',
        'The organization already has a project with this name. Choose another name.',
      )
    : error
}

/** The rules are active from the start, because no VM can be in the network yet. */
function defaultRules(projectId: string, networkId: string): NewRule[] {
  const anywhere = [{ resource_id: '', cidr: '0.0.0.0/0' }]
  const network = [{ resource_id: networkId, cidr: '' }]
  const rule = (
    name: string,
    direction: 'ingress' | 'egress',
    sources: NewRule['sources'],
    destinations: NewRule['destinations'],
    only: Partial<NewRule> = {},
  ): NewRule => ({
    id: uuid(),
    projectId,
    networkId,
    name,
    direction,
    action: 'allow',
    state: 'active',
    sources,
    sourcePorts: [],
    destinations,
    destinationPorts: [],
    protocols: ['tcp', 'udp', 'icmp'],
    labels: {},
    ...only,
  })
  return [
    rule('allow-ssh', 'ingress', anywhere, network, { destinationPorts: ['22'], protocols: ['tcp'] }),
    // A rule has one direction, so traffic inside the network needs two rules.
    rule('allow-internal', 'ingress', network, network),
    rule('allow-internal-egress', 'egress', network, network),
    rule('allow-egress', 'egress', network, anywhere),
  ]
}

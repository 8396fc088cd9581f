import type { Change, ResourceRow } from '../engine/row.ts'
import { projectOf } from '../engine/session.ts'
import type { Value, Values } from '../values/types.ts'
import { exactlyOneOf } from './checks.ts'
import { sameEndpoints } from './equivalents.ts'

const exampleNetwork = `resource "slipway_network" "example" {
  name = "training"
  cidr = "10.40.0.0/16"
}`

export const networkRows: ResourceRow[] = [
  {
    name: 'network',
    noun: 'network',
    description: 'A private network.',
    routes: 'network',
    example: exampleNetwork,
    fixed: ['gateway'],
    related: ['subnets'],
    defaults: { labels: {} },
  },
  {
    name: 'subnet',
    noun: 'subnet',
    description: 'The part of a network in one location.',
    routes: 'subnet',
    example: `${exampleNetwork}

resource "slipway_subnet" "example" {
  name           = "training-east"
  cidr           = "10.40.1.0/24"
  vpc_network_id = slipway_network.example.id
  location       = "us-east1-a"
}`,
  },
  {
    name: 'firewall_rule',
    noun: 'firewall rule',
    description: 'A rule that allows or denies packets to or from the VMs of a network.',
    routes: 'firewallRule',
    example: `${exampleNetwork}

resource "slipway_firewall_rule" "example" {
  name              = "allow-jupyter"
  vpc_network_id    = slipway_network.example.id
  action            = "allow"
  direction         = "ingress"
  protocols         = ["tcp"]
  sources           = [{ cidr = "203.0.113.0/24" }]
  destinations      = [{ resource_id = slipway_network.example.id }]
  destination_ports = ["8888", "8890-8899"]
}`,
    defaults: { labels: {}, source_ports: [], destination_ports: [] },
    equivalent: { sources: sameEndpoints, destinations: sameEndpoints },
    checkConfig: (config) =>
      ['sources', 'destinations'].flatMap((name) => endpointProblems(name, config[name] ?? null)),
  },
  {
    name: 'address',
    noun: 'address',
    description: 'A reserved public address.',
    routes: 'address',
    example: `resource "slipway_address" "example" {
  name     = "training"
  location = "us-east1-a"
}`,
    notes: { address: 'The IPv4 address.' },
    fixed: ['address', 'type'],
    defaults: { labels: {} },
    checkConfig: exactlyOneOf('address', ['location', 'vm_id']),
    beforeDelete: unassign,
  },
]

/**
 * Unassigns the address before its deletion, as the service requires. Ignores an error if the VM no longer has
 * the address.
 */
async function unassign({ session, prior, call }: Pick<Change, 'session' | 'prior' | 'call'>) {
  const params = { project_id: projectOf(session, prior.project_id), address_id: String(prior.id) }
  const holder = async () => ((await session.call('addressGet', { params })) as Values).vm_id
  const vm_id = await holder()
  if (!vm_id) return
  try {
    await call('addressUnassign', { query: { vm_id } })
  } catch (error) {
    if ((await holder()) === vm_id) throw error
  }
}

/** Checks that each endpoint is either a block or a resource. */
function endpointProblems(attribute: string, endpoints: Value) {
  if (!Array.isArray(endpoints)) return []
  const isWrong = (endpoint: Value) => {
    const { cidr, resource_id } = (endpoint ?? {}) as Record<string, Value>
    return (
      typeof endpoint === 'object' && [cidr, resource_id].filter((value) => (value ?? '') !== '').length !== 1
    )
  }
  if (!endpoints.some(isWrong)) return []
  const detail = 'Each item must have exactly one of cidr and resource_id.'
  return [{ summary: 'Invalid firewall rule', detail, attribute }]
}

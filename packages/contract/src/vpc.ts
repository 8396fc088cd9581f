import Type, { type Static } from 'typebox'
import { cidrOrAddressPattern, cidrPattern } from './cidr.ts'
import {
  Operation,
  OperationList,
  OperationListQuery,
  OperationStarted,
  OperationWaitQuery,
} from './operations.ts'
import { FirewallRule, RuleAction, RuleDirection, RuleProtocol } from './resources.ts'
import { defineRoutes } from './route.ts'
import {
  body,
  Empty,
  Labels,
  labelQuery,
  NonEmptyTimestamp,
  PageQuery,
  pagedList,
  pageQuery,
  ResourceName,
  record,
  Uuid,
  UuidOrEmpty,
} from './schema.ts'

const Cidr = Type.String({
  maxLength: 18,
  format: 'ipv4-cidr',
  pattern: cidrPattern,
  description: 'A private IPv4 block, /16 to /28.',
  examples: ['10.20.0.0/16'],
})

export const Network = record('Network', {
  id: Uuid,
  name: Type.String(),
  cidr: Type.String(),
  gateway: Type.String(),
  subnets: Type.Array(Uuid),
  labels: Labels,
  created_at: NonEmptyTimestamp,
})
export type Network = Static<typeof Network>

export const Subnet = record('Subnet', {
  id: Uuid,
  name: Type.String(),
  cidr: Type.String(),
  vpc_network_id: Uuid,
  location: Type.String(),
  created_at: NonEmptyTimestamp,
})
export type Subnet = Static<typeof Subnet>

const Protocols = Type.Array(RuleProtocol, { minItems: 1, maxItems: 3, uniqueItems: true })
const Ports = Type.Array(
  Type.String({
    maxLength: 11,
    format: 'port-range',
    pattern: '^[1-9][0-9]{0,4}(-[1-9][0-9]{0,4})?$',
    examples: ['22', '3000-8080'],
  }),
  { maxItems: 64, description: 'Ports or port ranges from 1 to 65535. An empty list means all ports.' },
)
const Endpoints = Type.Array(
  Type.Object(
    {
      resource_id: Type.Optional(
        Type.String({
          ...UuidOrEmpty,
          maxLength: 36,
          description: 'A VM, subnet or network of the project. An empty string means not set.',
        }),
      ),
      cidr: Type.Optional(
        Type.String({
          maxLength: 18,
          format: 'ipv4-cidr-or-address',
          pattern: cidrOrAddressPattern,
          description:
            'An IPv4 block whose host bits are zero, or an address. An empty string means not set.',
          examples: ['203.0.113.0/24'],
        }),
      ),
    },
    { additionalProperties: false },
  ),
  { minItems: 1, maxItems: 64, description: 'Each item must have exactly one of `cidr` and `resource_id`.' },
)

export const FirewallRuleCreate = body(
  'FirewallRuleCreate',
  {
    name: ResourceName,
    vpc_network_id: Uuid,
    action: RuleAction,
    direction: RuleDirection,
    protocols: Protocols,
    sources: Endpoints,
    destinations: Endpoints,
    source_ports: Type.Optional(Ports),
    destination_ports: Type.Optional(Ports),
    labels: Type.Optional(Labels),
  },
  {
    examples: [
      {
        name: 'allow-jupyter',
        vpc_network_id: '0199c6f2-9a1e-7c4b-8f51-6a2f0c1d7c01',
        action: 'allow',
        direction: 'ingress',
        protocols: ['tcp'],
        sources: [{ cidr: '203.0.113.0/24' }],
        destinations: [{ cidr: '172.27.0.0/16' }],
        destination_ports: ['8888'],
      },
    ],
  },
)
export type FirewallRuleCreate = Static<typeof FirewallRuleCreate>

export const FirewallRuleUpdate = body('FirewallRuleUpdate', {
  name: Type.Optional(ResourceName),
  protocols: Type.Optional(Protocols),
  sources: Type.Optional(Endpoints),
  destinations: Type.Optional(Endpoints),
  source_ports: Type.Optional(Ports),
  destination_ports: Type.Optional(Ports),
  labels: Type.Optional(Labels),
})
export type FirewallRuleUpdate = Static<typeof FirewallRuleUpdate>

const AddressOrVm = Type.String({ minLength: 1, maxLength: 36, description: 'An IPv4 address or a VM id.' })

export const vpcRoutes = defineRoutes({
  networkList: {
    method: 'GET',
    path: '/v0.1/projects/{project_id}/vpc/networks',
    tag: 'VPC',
    summary: 'List networks',
    access: 'viewer',
    query: Type.Object({ ...pageQuery, ...labelQuery }),
    response: pagedList('NetworkList', Network),
  },
  networkCreate: {
    method: 'POST',
    path: '/v0.1/projects/{project_id}/vpc/networks',
    tag: 'VPC',
    summary: 'Create a network',
    access: 'member',
    body: body('NetworkCreate', { name: ResourceName, cidr: Cidr, labels: Type.Optional(Labels) }),
    response: Network,
    errors: ['already_exists', 'conflict', 'quota_exceeded'],
  },
  networkGet: {
    method: 'GET',
    path: '/v0.1/projects/{project_id}/vpc/networks/{network_id}',
    tag: 'VPC',
    summary: 'Read a network',
    access: 'viewer',
    response: Network,
  },
  networkUpdate: {
    method: 'PATCH',
    path: '/v0.1/projects/{project_id}/vpc/networks/{network_id}',
    tag: 'VPC',
    summary: 'Rename a network, or replace its labels',
    access: 'member',
    body: body('NetworkUpdate', { name: Type.Optional(ResourceName), labels: Type.Optional(Labels) }),
    response: Network,
    errors: ['already_exists'],
  },
  networkDelete: {
    method: 'DELETE',
    path: '/v0.1/projects/{project_id}/vpc/networks/{network_id}',
    tag: 'VPC',
    summary: 'Delete an empty network',
    access: 'member',
    response: Empty,
    errors: ['conflict'],
  },
  subnetList: {
    method: 'GET',
    path: '/v0.1/projects/{project_id}/vpc/subnets',
    tag: 'VPC',
    summary: 'List subnets',
    access: 'viewer',
    query: PageQuery,
    response: pagedList('SubnetList', Subnet),
  },
  subnetCreate: {
    method: 'POST',
    path: '/v0.1/projects/{project_id}/vpc/subnets',
    tag: 'VPC',
    summary: 'Create a subnet',
    access: 'member',
    body: body('SubnetCreate', {
      name: ResourceName,
      cidr: Cidr,
      vpc_network_id: Uuid,
      location: Type.String({ minLength: 1, maxLength: 100 }),
    }),
    response: Subnet,
    errors: ['already_exists', 'conflict', 'quota_exceeded'],
  },
  subnetGet: {
    method: 'GET',
    path: '/v0.1/projects/{project_id}/vpc/subnets/{subnet_id}',
    tag: 'VPC',
    summary: 'Read a subnet',
    access: 'viewer',
    response: Subnet,
  },
  subnetUpdate: {
    method: 'PATCH',
    path: '/v0.1/projects/{project_id}/vpc/subnets/{subnet_id}',
    tag: 'VPC',
    summary: 'Rename a subnet',
    access: 'member',
    body: body('SubnetUpdate', { name: ResourceName }),
    response: Subnet,
    errors: ['already_exists'],
  },
  subnetDelete: {
    method: 'DELETE',
    path: '/v0.1/projects/{project_id}/vpc/subnets/{subnet_id}',
    tag: 'VPC',
    summary: 'Delete an empty subnet',
    access: 'member',
    response: Empty,
    errors: ['conflict'],
  },
  firewallRuleCreate: {
    method: 'POST',
    path: '/v0.1/projects/{project_id}/vpc/firewall-rules',
    tag: 'VPC',
    summary: 'Create a firewall rule',
    access: 'member',
    body: FirewallRuleCreate,
    response: OperationStarted,
    errors: ['already_exists', 'quota_exceeded'],
  },
  firewallRuleList: {
    method: 'GET',
    path: '/v0.1/projects/{project_id}/vpc/firewall-rules',
    tag: 'VPC',
    summary: 'List firewall rules',
    access: 'viewer',
    query: Type.Object({ ...pageQuery, ...labelQuery }),
    response: pagedList('FirewallRuleList', FirewallRule),
  },
  firewallRuleGet: {
    method: 'GET',
    path: '/v0.1/projects/{project_id}/vpc/firewall-rules/{rule_id}',
    tag: 'VPC',
    summary: 'Read a firewall rule',
    access: 'viewer',
    response: FirewallRule,
  },
  firewallRuleUpdate: {
    method: 'PATCH',
    path: '/v0.1/projects/{project_id}/vpc/firewall-rules/{rule_id}',
    tag: 'VPC',
    summary: 'Change a firewall rule',
    access: 'member',
    body: FirewallRuleUpdate,
    response: OperationStarted,
    errors: ['already_exists', 'conflict'],
  },
  firewallRuleDelete: {
    method: 'DELETE',
    path: '/v0.1/projects/{project_id}/vpc/firewall-rules/{rule_id}',
    tag: 'VPC',
    summary: 'Delete a firewall rule',
    access: 'member',
    response: OperationStarted,
  },
  firewallRuleTest: {
    method: 'POST',
    path: '/v0.1/projects/{project_id}/vpc/firewall-rules/test',
    changesNothing: true,
    tag: 'VPC',
    summary: 'Test whether the rules allow a packet',
    access: 'viewer',
    body: body('FirewallRuleTest', {
      direction: RuleDirection,
      protocol: RuleProtocol,
      source: AddressOrVm,
      destination: AddressOrVm,
      destination_port: Type.Optional(Type.Integer({ minimum: 1, maximum: 65535 })),
    }),
    response: record('FirewallRuleTestResult', {
      allowed: Type.Boolean(),
      rule_id: Type.String({
        description:
          'The rule that allowed or denied the packet. Empty if no rule matched; the packet is then denied.',
      }),
    }),
  },
  firewallRuleOperationList: {
    method: 'GET',
    path: '/v0.1/projects/{project_id}/vpc/firewall-rules/operations',
    tag: 'VPC',
    summary: 'List firewall rule operations',
    access: 'viewer',
    query: OperationListQuery,
    response: OperationList,
  },
  firewallRuleOperationGet: {
    method: 'GET',
    path: '/v0.1/projects/{project_id}/vpc/firewall-rules/operations/{operation_id}',
    tag: 'VPC',
    summary: 'Read a firewall rule operation, or wait until it ends',
    access: 'viewer',
    query: OperationWaitQuery,
    response: Operation,
  },
})

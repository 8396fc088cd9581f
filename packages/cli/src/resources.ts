import type {
  AccessKey,
  Disk,
  FirewallEndpoint,
  FirewallRule,
  Host,
  Image,
  Location,
  Member,
  Network,
  Operation,
  Organization,
  Project,
  RouteAnswer,
  Subnet,
  Vm,
  Webhook,
} from '@slipway/sdk'
import type { Resource } from './core/resource.ts'
import { ageOf } from './output/text.ts'

/** The kinds of things that generic verbs, names and completion work on. */

export const publicAddress = (vm: Vm): string => vm.network_interfaces[0]?.ips[0]?.public_ipv4.address ?? ''
export const privateAddress = (vm: Vm): string => vm.network_interfaces[0]?.ips[0]?.private_ipv4.address ?? ''
const sameName = (thing: { id: string; name: string }) => thing
const id = { name: 'id', value: (thing: { id: string }) => thing.id, isExtra: true } as const
const age = {
  name: 'age',
  value: (thing: { created_at: string }) => ageOf(thing.created_at),
  align: 'right',
  spare: 1,
} as const

export const vms: Resource<Vm> = {
  noun: 'vm',
  title: 'VM',
  example: 'train-7',
  columns: [
    { name: 'name', value: (vm) => vm.name },
    { name: 'type', value: (vm) => vm.type },
    { name: 'state', value: (vm) => vm.state, isState: true },
    { name: 'location', value: (vm) => vm.location, spare: 2 },
    { name: 'ssh', value: (vm) => vm.ssh_destination },
    { name: 'expires', value: (vm) => (vm.expires_at ? `in ${ageOf(vm.expires_at)}` : ''), spare: 3 },
    age,
    id,
    { name: 'public_ip', value: publicAddress, isExtra: true },
    { name: 'private_ip', value: privateAddress, isExtra: true },
    { name: 'image', value: (vm) => vm.image, isExtra: true },
  ],
  list: async (cli, filter) => cli.client.collect('vmList', { project_id: await cli.project(), ...filter }),
  named: sameName,
  fields: vmFields,
}

function vmFields(vm: Vm): [string, string][] {
  return [
    ['Name', vm.name],
    ['Id', vm.id],
    ['State', vm.state],
    ['Type', vm.type],
    ['Location', vm.location],
    ['Image', vm.image || '-'],
    ['SSH', vm.ssh_destination || '-'],
    ['Public address', publicAddress(vm) || '-'],
    ['Private address', privateAddress(vm) || '-'],
    [
      'Disks',
      vm.disks
        .map((disk) => `${disk.name} ${disk.size} ${disk.type}, ${disk.attachment_type}, ${disk.mode}`)
        .join('\n'),
    ],
    ['Created', `${vm.created_at} (${ageOf(vm.created_at)} ago)`],
    [
      'Expires',
      vm.expires_at ? `${vm.expires_at} (in ${ageOf(vm.expires_at)}), then ${vm.on_expiry}` : 'never',
    ],
  ]
}

export const disks: Resource<Disk> = {
  noun: 'disk',
  title: 'disk',
  example: 'datasets',
  columns: [
    { name: 'name', value: (disk) => disk.name },
    { name: 'size', value: (disk) => disk.size, align: 'right' },
    { name: 'type', value: (disk) => disk.type },
    { name: 'state', value: (disk) => disk.state, isState: true },
    { name: 'location', value: (disk) => disk.location, spare: 2 },
    { name: 'attached', value: (disk) => disk.attached_to.length || '' },
    age,
    id,
  ],
  list: async (cli, filter) => cli.client.collect('diskList', { project_id: await cli.project(), ...filter }),
  named: sameName,
  fields: (disk) => [
    ['Name', disk.name],
    ['Id', disk.id],
    ['State', disk.state],
    ['Type', disk.type],
    ['Size', disk.size],
    ['Block size', String(disk.block_size || '-')],
    ['Location', disk.location],
    ['Attached to', disk.attached_to.map((place) => `${place.vm_id} ${place.mode}`).join('\n') || '-'],
    ['Created', `${disk.created_at} (${ageOf(disk.created_at)} ago)`],
  ],
}

export const networks: Resource<Network> = {
  noun: 'network',
  title: 'network',
  example: 'training',
  columns: [
    { name: 'name', value: (network) => network.name },
    { name: 'cidr', value: (network) => network.cidr },
    { name: 'gateway', value: (network) => network.gateway, spare: 2 },
    { name: 'subnets', value: (network) => network.subnets.length, align: 'right' },
    age,
    id,
  ],
  list: async (cli) => cli.client.collect('networkList', { project_id: await cli.project() }),
  named: sameName,
}

export const subnets: Resource<Subnet> = {
  noun: 'subnet',
  title: 'subnet',
  example: 'training-a',
  columns: [
    { name: 'name', value: (subnet) => subnet.name },
    { name: 'cidr', value: (subnet) => subnet.cidr },
    { name: 'location', value: (subnet) => subnet.location },
    age,
    id,
  ],
  list: async (cli) => cli.client.collect('subnetList', { project_id: await cli.project() }),
  named: sameName,
}

const endpointsText = (endpoints: FirewallEndpoint[]) =>
  endpoints.map((endpoint) => endpoint.cidr || endpoint.resource_id).join(',')

export const firewallRules: Resource<FirewallRule> = {
  noun: 'firewall',
  title: 'firewall rule',
  example: 'allow-jupyter',
  columns: [
    { name: 'name', value: (rule) => rule.name },
    { name: 'action', value: (rule) => rule.action },
    { name: 'direction', value: (rule) => rule.direction },
    { name: 'protocols', value: (rule) => rule.protocols.join(',') },
    { name: 'ports', value: (rule) => rule.destination_ports.join(',') || 'all' },
    { name: 'from', value: (rule) => endpointsText(rule.sources) },
    { name: 'to', value: (rule) => endpointsText(rule.destinations), spare: 1 },
    { name: 'state', value: (rule) => rule.state, isState: true, spare: 2 },
    id,
  ],
  list: async (cli) => cli.client.collect('firewallRuleList', { project_id: await cli.project() }),
  named: sameName,
  fields: (rule) => [
    ['Name', rule.name],
    ['Id', rule.id],
    ['State', rule.state],
    ['Rule', `${rule.action} ${rule.direction}`],
    ['Protocols', rule.protocols.join(', ')],
    ['From', endpointsText(rule.sources)],
    ['From ports', rule.source_ports.join(', ') || 'all'],
    ['To', endpointsText(rule.destinations)],
    ['To ports', rule.destination_ports.join(', ') || 'all'],
    ['Network', rule.vpc_network_id],
  ],
}

export const accessKeys: Resource<AccessKey> = {
  noun: 'key',
  title: 'access key',
  example: 'ci',
  columns: [
    { name: 'name', value: (key) => key.name },
    { name: 'role', value: (key) => key.role },
    { name: 'prefix', value: (key) => key.prefix },
    { name: 'expires', value: (key) => (key.expires_at ? `in ${ageOf(key.expires_at)}` : ''), spare: 2 },
    {
      name: 'last_used',
      value: (key) => (key.last_used_at ? `${ageOf(key.last_used_at)} ago` : 'never'),
      spare: 3,
    },
    age,
    id,
  ],
  list: async (cli) => cli.client.collect('accessKeyList', { project_id: await cli.project() }),
  named: sameName,
}

export const members: Resource<Member> = {
  noun: 'member',
  title: 'member',
  example: 'ada@example.com',
  columns: [
    { name: 'email', value: (member) => member.email },
    { name: 'role', value: (member) => member.role },
    { name: 'state', value: (member) => member.state, isState: true },
    age,
    { name: 'user_id', value: (member) => member.user_id, isExtra: true },
  ],
  list: async (cli) => cli.client.collect('memberList', { organization_id: await cli.organization() }),
  named: (member) => ({ id: member.user_id, name: member.email }),
}

export const projects: Resource<Project> = {
  noun: 'project',
  title: 'project',
  example: 'research',
  columns: [
    { name: 'name', value: (project) => project.name },
    { name: 'version', value: (project) => project.version, spare: 1 },
    { name: 'id', value: (project) => project.id },
    { name: 'organization_id', value: (project) => project.organization_id, spare: 2 },
  ],
  list: (cli) => cli.client.collect('projectList', {}),
  named: sameName,
}

export const organizations: Resource<Organization> = {
  noun: 'org',
  title: 'organization',
  example: 'harbour-labs',
  columns: [
    { name: 'name', value: (organization) => organization.name },
    { name: 'id', value: (organization) => organization.id },
    { name: 'payment_customer_id', value: (organization) => organization.payment_customer_id, spare: 1 },
  ],
  list: (cli) => cli.client.collect('organizationList', {}),
  named: sameName,
}

export const webhooks: Resource<Webhook> = {
  noun: 'webhook',
  title: 'webhook',
  example: 'https://hooks.example.com/slipway',
  columns: [
    { name: 'url', value: (webhook) => webhook.url },
    { name: 'events', value: (webhook) => webhook.event_types.join(',') || 'all' },
    { name: 'state', value: (webhook) => webhook.state, isState: true },
    age,
    id,
  ],
  list: async (cli) => cli.client.collect('webhookList', { project_id: await cli.project() }),
  named: (webhook) => ({ id: webhook.id, name: webhook.url }),
}

export const images: Resource<Image> = {
  noun: 'image',
  title: 'image',
  example: 'ubuntu24.04-nvidia:latest',
  columns: [
    { name: 'name', value: (image) => image.name },
    { name: 'description', value: (image) => image.description, spare: 2 },
    { name: 'tags', value: (image) => image.tags.join(','), spare: 3 },
    { name: 'locations', value: (image) => image.locations.join(','), spare: 1 },
    id,
  ],
  list: async (cli) => cli.client.collect('imageList', { project_id: await cli.project() }),
  named: sameName,
}

export const locations: Resource<Location> = {
  noun: 'location',
  title: 'location',
  columns: [
    { name: 'name', value: (location) => location.name },
    { name: 'region', value: (location) => location.region },
    { name: 'zone', value: (location) => location.zone },
    { name: 'description', value: (location) => location.description },
  ],
  list: async (cli) => cli.client.collect('locationList', { project_id: await cli.project() }),
  named: (location) => ({ id: location.name, name: location.name }),
}

export const operations: Resource<Operation> = {
  noun: 'operation',
  title: 'operation',
  columns: [
    { name: 'id', value: (operation) => operation.operation_id },
    { name: 'operation', value: (operation) => operation.metadata.operation_name.toLowerCase() },
    { name: 'type', value: (operation) => operation.metadata.type },
    { name: 'state', value: (operation) => operation.state, isState: true },
    { name: 'resource_id', value: (operation) => operation.metadata.id, spare: 1 },
    { name: 'age', value: (operation) => ageOf(operation.started_at), align: 'right', spare: 2 },
  ],
  list: async (cli) => cli.client.collect('operationList', { project_id: await cli.project() }),
  named: (operation) => ({ id: operation.operation_id, name: operation.operation_id }),
}

export const hosts: Resource<Host> = {
  noun: 'host',
  title: 'host',
  example: 'us-east1-a-a100-1',
  columns: [
    { name: 'name', value: (host) => host.name },
    { name: 'location', value: (host) => host.location },
    { name: 'engine', value: (host) => host.engine, spare: 2 },
    { name: 'state', value: (host) => host.state, isState: true },
    { name: 'schedulable', value: (host) => (host.schedulable ? 'yes' : 'no') },
    {
      name: 'gpus',
      value: (host) => `${host.gpus.filter((gpu) => gpu.state === 'free').length}/${host.gpus.length} free`,
    },
    { name: 'model', value: (host) => host.gpus[0]?.model, spare: 1 },
    {
      name: 'reported',
      value: (host) => (host.last_report_at ? `${ageOf(host.last_report_at)} ago` : 'never'),
      spare: 3,
    },
    id,
  ],
  list: (cli) => cli.operator.collect('adminHostList', {}),
  named: ({ id, name, location }) => ({ id, name, hint: location }),
}

export type AdminUser = RouteAnswer<'adminUserUpdate'>
export const users: Resource<AdminUser> = {
  noun: 'user',
  title: 'user',
  example: 'ada@example.com',
  columns: [
    { name: 'email', value: (user) => user.email },
    { name: 'state', value: (user) => (user.suspended ? 'suspended' : user.state), isState: true },
    { name: 'operator', value: (user) => (user.is_operator ? 'yes' : '') },
    age,
    id,
  ],
  list: (cli) => cli.operator.collect('adminUserList', {}),
  named: (user) => ({ id: user.id, name: user.email }),
}

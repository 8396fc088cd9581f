import type { Vm } from '@slipway/sdk'
import { labelsColumn, labelsText } from '../../core/labels.ts'
import { ageColumn, idColumn, ownName, type Resource } from '../../core/resource.ts'
import { ageOf } from '../../output/text.ts'

const publicAddress = (vm: Vm): string => vm.network_interfaces[0]?.ips[0]?.public_ipv4.address ?? ''
const privateAddress = (vm: Vm): string => vm.network_interfaces[0]?.ips[0]?.private_ipv4.address ?? ''

export const vms: Resource<Vm> = {
  noun: 'vm',
  title: 'VM',
  example: 'train-7',
  otherExample: 'train-8',
  columns: [
    { name: 'name', value: (vm) => vm.name },
    { name: 'type', value: (vm) => vm.type },
    { name: 'state', value: (vm) => vm.state, isState: true },
    { name: 'location', value: (vm) => vm.location, hideOrder: 2 },
    { name: 'ssh', value: (vm) => vm.ssh_destination },
    { name: 'expires', value: (vm) => (vm.expires_at ? `in ${ageOf(vm.expires_at)}` : ''), hideOrder: 3 },
    ageColumn,
    idColumn,
    { name: 'public_ip', value: publicAddress, isExtra: true },
    { name: 'private_ip', value: privateAddress, isExtra: true },
    { name: 'image', value: (vm) => vm.image, isExtra: true },
    { name: 'health', value: (vm) => vm.health.status, isExtra: true },
    labelsColumn,
  ],
  route: 'vmList',
  list: async (cli, filter) => cli.client.collect('vmList', { project_id: await cli.project(), ...filter }),
  named: ownName,
  fields: vmFields,
}

function vmFields(vm: Vm): [string, string][] {
  return [
    ['Name', vm.name],
    ['Id', vm.id],
    ['State', vm.state],
    ['Health', vm.health.reasons.map(({ message }) => message).join('\n') || vm.health.status],
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
    ['Labels', labelsText(vm.labels) || '-'],
    ['Protected', vm.deletion_protection ? 'from deletion' : 'no'],
    ['Created', `${vm.created_at} (${ageOf(vm.created_at)} ago)`],
    [
      'Expires',
      vm.expires_at ? `${vm.expires_at} (in ${ageOf(vm.expires_at)}), then ${vm.on_expiry}` : 'never',
    ],
  ]
}

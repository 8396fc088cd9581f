import type { VmCreate } from '@slipway/sdk'
import { labelText } from '../../lib/labels.ts'
import { scriptFiles, shellQuote } from '../../lib/shell.ts'
import { ttlArgument } from '../../lib/ttl.ts'
import type { GroupCreate } from './draft.ts'

interface Names {
  /** The names of the chosen saved keys. */
  keyNames: string[]
  /** The name of the template, or the ID of an earlier version; empty if there is no template. */
  template: string
}

/** Returns the CLI command that creates the VM. */
export const vmCommand = (request: VmCreate, names: Names): string =>
  [
    vmLine('slipway vm create', request, names),
    ...(request.deletion_protection ? [`slipway vm protect ${shellQuote(request.name || 'NAME')}`] : []),
  ].join(' &&\n')

/** Returns the CLI command that creates the group. */
export const groupCommand = (request: GroupCreate, names: Names): string =>
  [
    groupLine('slipway group create', request, names),
    ...(request.deletion_protection ? [`slipway group protect ${shellQuote(request.name || 'NAME')}`] : []),
  ].join(' &&\n')

/** Returns the CLI command that waits in the queue for one VM, or for the group. */
export function queueCommand(
  request: VmCreate,
  group: GroupCreate | null,
  names: Names,
  { days, isHeld }: { days: string; isHeld: boolean },
): string {
  const command = group
    ? groupLine('slipway queue group', group, names)
    : vmLine('slipway queue create', request, names)
  return [command, `--for ${days}d`, ...(isHeld ? ['--hold'] : [])].join(' \\\n  ')
}

const vmLine = (command: string, request: VmCreate, names: Names): string =>
  [`${command} ${shellQuote(request.name || 'NAME')}`, ...optionsOf(request, names)].join(' \\\n  ')

const groupLine = (command: string, group: GroupCreate, names: Names): string =>
  [
    `${command} ${shellQuote(group.name || 'NAME')}`,
    `--count ${group.desired_count}`,
    ...optionsOf(group.vm ?? {}, names),
    ...(group.placement_policy === 'unspecified' ? [] : [`--placement ${group.placement_policy}`]),
    ...(group.on_member_loss ? [`--on-member-loss ${group.on_member_loss}`] : []),
  ].join(' \\\n  ')

/** Returns the CLI command that saves the values as a template. */
export const templateCommand = (
  name: string,
  request: Omit<VmCreate, 'name'>,
  keyNames: string[],
  isNewVersion: boolean,
): string =>
  [
    `slipway template create ${shellQuote(name || 'NAME')}${isNewVersion ? ' --new-version' : ''}`,
    ...optionsOf(request, { keyNames, template: '' }),
    ...(request.new_disks ?? []).map(({ size, type }) => `--new-disk ${size}${type ? `:${type}` : ''}`),
    ...(request.os_disk_size ? [`--os-disk-size ${request.os_disk_size}`] : []),
  ].join(' \\\n  ')

const optionsOf = (request: Omit<VmCreate, 'name'>, { keyNames, template }: Names): string[] => [
  ...(template ? [`--template ${shellQuote(template)}`] : []),
  ...(request.type ? [`--type ${request.type}`] : []),
  ...(request.location ? [`--location ${request.location}`] : []),
  ...(request.custom_image ? [`--custom-image ${request.custom_image}`] : []),
  ...(request.image ? [`--image ${request.image}`] : []),
  ...(request.ssh_key_ids || !template ? keyNames.map((name) => `--ssh-key ${shellQuote(name)}`) : []),
  ...(request.ssh_public_key || (keyNames.length === 0 && !template)
    ? ['--ssh-key ~/.ssh/id_ed25519.pub']
    : []),
  ...(request.startup_script ? [`--startup-script ${scriptFiles.startup_script}`] : []),
  ...(request.shutdown_script ? [`--shutdown-script ${scriptFiles.shutdown_script}`] : []),
  ...(request.disks ?? []).map(
    ({ disk_id, mode }) => `--disk ${disk_id}${mode === 'read-only' ? ':read-only' : ''}`,
  ),
  ...Object.entries(request.labels ?? {}).map(([key, value]) => `--label ${labelText(key, value)}`),
  ...(request.subnet_id ? [`--subnet ${request.subnet_id}`] : []),
  ...(request.public_ip ? [`--public-ip ${request.public_ip}`] : []),
  ...(request.ttl_seconds
    ? [`--ttl ${ttlArgument(request.ttl_seconds)} --on-expiry ${request.on_expiry}`]
    : []),
]

import { type ExpiryAction, expiryActions } from '@slipway/contract/states'
import { diskTypes, type VmCreate, vmTypeNames } from '@slipway/sdk'
import type { Cli } from '../../core/cli.ts'
import { type OptionSpec, oneOf } from '../../core/command.ts'
import { labelOption, parseLabels } from '../../core/labels.ts'
import { parseDurationMs } from '../../core/parse.ts'
import { idOf } from '../../core/resource.ts'
import { readTextFile } from '../../io.ts'
import { disks } from '../disk/resource.ts'
import { subnets } from '../subnet/resource.ts'
import { keysOf } from './public-key.ts'

/** The options that are common to VMs, templates and groups. */
export interface VmInput {
  type?: string
  image?: string
  customImage?: string
  sshKey?: string[]
  startupScript?: string
  shutdownScript?: string
  disk?: string[]
  newDisk?: string[]
  subnet?: string
  publicIp?: 'dynamic' | 'none'
  osDiskSize?: string
  label?: string[]
  ttl?: number
  onExpiry?: ExpiryAction
}

export const typeOption: OptionSpec = {
  flags: '--type <type>',
  description: 'VM type, see `slipway offers`',
  values: vmTypeNames,
}

const withDefault = (description: string, value: string | undefined) =>
  value === undefined ? description : `${description} (default: ${value})`

/** `defaults` says which image and which SSH key the command uses if none is given. */
export const vmOptionsWith = (defaults: { image?: string; sshKey?: string }): OptionSpec[] => [
  {
    flags: '--image <image>',
    description: withDefault('image', defaults.image),
    complete: 'image',
  },
  {
    flags: '--custom-image <image>',
    description: 'name or id of a custom image, used instead of --image',
    complete: 'custom-image',
  },
  {
    flags: '--ssh-key <key>',
    description: withDefault(
      'name of a registered key, or a public key file; may be repeated',
      defaults.sshKey,
    ),
    complete: 'ssh-key',
    repeats: true,
  },
  { flags: '--startup-script <file>', description: 'script to run at every boot', complete: 'file' },
  { flags: '--shutdown-script <file>', description: 'script to run before the VM stops', complete: 'file' },
  {
    flags: '--disk <disk>',
    description: 'attach a disk, `NAME` or `NAME:read-only`; may be repeated',
    complete: 'disk',
    afterColon: ['read-only', 'read-write'],
    repeats: true,
  },
  {
    flags: '--new-disk <size>',
    description: 'create and attach a disk, `SIZE` or `SIZE:TYPE`, for example 100GiB; may be repeated',
    afterColon: diskTypes,
    repeats: true,
  },
  {
    flags: '--subnet <subnet>',
    description: 'subnet (default: the subnet of the location)',
    complete: 'subnet',
  },
  { flags: '--public-ip <kind>', ...oneOf(['dynamic', 'none']) },
  {
    flags: '--os-disk-size <size>',
    description: 'size of the OS disk, for example 256GiB (default: 128GiB)',
  },
  labelOption,
  {
    flags: '--ttl <duration>',
    description: 'time to live, counted from the first start, for example 4h',
    parse: parseDurationMs,
  },
  {
    flags: '--on-expiry <action>',
    description: 'what to do when the TTL expires: stop or delete',
    values: expiryActions,
  },
]

/** The options of templates and groups, for which the command chooses neither an image nor a key. */
export const vmOptions = vmOptionsWith({})

/** Converts the options to request fields: reads the files and replaces names with ids. */
export async function vmFieldsOf(cli: Cli, input: VmInput): Promise<Omit<VmCreate, 'name'>> {
  const { type, image, customImage, publicIp, onExpiry } = input
  const attached = await Promise.all((input.disk ?? []).map((text) => diskOf(cli, text)))
  const { ssh_public_key, ...registered } = await keysOf(cli, input.sshKey ?? [])
  return {
    ...(type && { type }),
    ...(image && { image }),
    ...(customImage && { custom_image: customImage }),
    ...(ssh_public_key && { ssh_public_key }),
    ...registered,
    ...(input.startupScript && { startup_script: await readTextFile(cli.io, input.startupScript) }),
    ...(input.shutdownScript && { shutdown_script: await readTextFile(cli.io, input.shutdownScript) }),
    ...(attached.length > 0 && { disks: attached }),
    ...(input.newDisk && { new_disks: input.newDisk.map(newDiskOf) }),
    ...(input.subnet && { subnet_id: await idOf(cli, subnets, input.subnet) }),
    ...(publicIp && { public_ip: publicIp }),
    ...(input.osDiskSize && { os_disk_size: input.osDiskSize }),
    ...(input.label && { labels: parseLabels(input.label) }),
    ...(input.ttl !== undefined && { ttl_seconds: Math.round(input.ttl / 1000) }),
    ...(onExpiry && { on_expiry: onExpiry }),
  }
}

async function diskOf(cli: Cli, text: string): Promise<NonNullable<VmCreate['disks']>[number]> {
  const [, ref = text, mode] = /^(.+?):(read-only|read-write)$/.exec(text) ?? []
  const disk_id = await idOf(cli, disks, ref)
  return mode ? { disk_id, mode: mode as 'read-only' | 'read-write' } : { disk_id }
}

type NewDisk = NonNullable<VmCreate['new_disks']>[number]

/** The service validates the size and the type. */
function newDiskOf(text: string): NewDisk {
  const [size = '', type] = text.split(':')
  return { size, ...(type && { type: type as NonNullable<NewDisk['type']> }) }
}

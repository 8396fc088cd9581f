import { type ExpiryAction, expiryActions } from '@slipway/contract/states'
import { isApiError, type VmCreate, vmTypeNames } from '@slipway/sdk'
import { askYes } from '../../core/ask.ts'
import type { Cli } from '../../core/cli.ts'
import { command, type OptionSpec, oneOf } from '../../core/command.ts'
import { labelOption, parseLabels } from '../../core/labels.ts'
import { parseDurationMs } from '../../core/parse.ts'
import { follow, type WaitFlags, waitOptions } from '../../core/progress.ts'
import { idOf } from '../../core/resource.ts'
import { Interrupted } from '../../errors/cli-error.ts'
import { readTextFile } from '../../io.ts'
import { print, printData } from '../../output/print.ts'
import { usd } from '../../output/text.ts'
import { disks } from '../disk/resource.ts'
import { subnets } from '../subnet/resource.ts'
import { anyLocation, completeDraft, type VmDraft } from './create-questions.ts'
import { keysOf } from './public-key.ts'
import { howToConnect } from './ssh-destination.ts'

export interface VmInput {
  name?: string
  type?: string
  location?: string[]
  image?: string
  sshKey?: string[]
  startupScript?: string
  shutdownScript?: string
  disk?: string[]
  subnet?: string
  publicIp?: 'dynamic' | 'none'
  osDiskSize?: string
  label?: string[]
  ttl?: number
  onExpiry?: ExpiryAction
}

interface VmCreateInput extends VmInput, WaitFlags {
  dryRun?: boolean
  yes?: boolean
}

/** The options that describe a new VM. */
export const vmOptions: OptionSpec[] = [
  { flags: '--type <type>', description: 'VM type, see `slipway offers`', values: vmTypeNames },
  {
    flags: '--location <locations>',
    description: `location; several, separated by commas, are tried in order; \`${anyLocation}\` means any location with free capacity`,
    complete: 'location',
    also: [anyLocation],
    isList: true,
  },
  {
    flags: '--image <image>',
    description: 'image (default: the newest Ubuntu image, or the only image)',
    complete: 'image',
  },
  {
    flags: '--ssh-key <key>',
    description:
      'name of a registered key, or a public key file; may be repeated (default: the key in ~/.ssh)',
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
    description: 'time to live from the first start, for example 4h',
    parse: parseDurationMs,
  },
  {
    flags: '--on-expiry <action>',
    description: 'what to do when the TTL expires: stop or delete',
    values: expiryActions,
  },
]

export const vmCreate = command<VmCreateInput>({
  name: 'create',
  summary: 'create a VM',
  details:
    'On a terminal, the command asks for missing values. It shows the price first, waits until the VM runs, and prints ' +
    'the ssh command to connect to it.',
  arguments: [{ syntax: '[name]', description: 'name of the VM (default: a generated name)' }],
  options: [
    ...vmOptions,
    { flags: '--dry-run', description: 'show the price and the request, create nothing' },
    { flags: '-y, --yes', description: 'skip the final confirmation' },
    ...waitOptions,
  ],
  examples: [
    'slipway vm create',
    'slipway vm create train-7 --type a100.1x --location us-east1-a',
    'slipway vm create train-7 --type a100.8x --location us-east1-a --ssh-key ~/.ssh/id_ed25519.pub --disk datasets:read-only --ttl 4h',
    'slipway vm create train-7 --type a100.1x --location us-east1-a --ssh-key laptop --label team=ml',
    'slipway vm create train-7 --type a100.1x --location us-east1-a,eu-north1-a',
    'slipway vm create train-7 --type a100.1x --location any',
    'slipway vm create train-7 --type a40.1x --location eu-north1-a --dry-run',
    'slipway vm create train-7 --type a40.1x --location eu-north1-a --no-wait',
  ],
  async run(cli, input) {
    const [first, ...others] = input.location ?? []
    let location = first
    for (const next of others) {
      const isDone = await create(cli, input, location).then(
        () => true,
        (error) => {
          if (!isApiError(error) || error.code !== 'out_of_stock') throw error
          cli.say(`${input.type} is out of stock in ${location}; trying ${next}.`)
          return false
        },
      )
      if (isDone) return
      location = next
    }
    await create(cli, input, location)
  },
})

/** Creates a VM in one location, follows it and prints how to reach it. */
async function create(cli: Cli, input: VmCreateInput, location: string | undefined): Promise<void> {
  const project_id = await cli.project()
  const { request, wasAsked } = await completeDraft(cli, await draftOf(cli, input, location))
  const estimate = await cli.client.estimateCreate({ project_id }, { vm: request })
  const price =
    estimate.usd_per_hour === null
      ? 'no price is set'
      : `${usd(estimate.usd_per_hour)} per hour, ${usd(estimate.usd_per_month)} per month`
  if (input.dryRun) return printDryRun(cli, request, estimate, price)
  cli.note(`${cli.noteColors.bold(request.name)}: ${request.type} in ${request.location}, ${price}`)
  if (wasAsked && !input.yes && !(await askYes(cli, 'Create it?', true))) throw new Interrupted()

  const { operation } = await cli.client.vmCreate({ project_id }, request)
  const finished = await follow(cli, `Creating ${request.name}`, operation, input)
  if (!finished) return
  if (cli.format.kind !== 'table') return printData(cli, finished.result)
  print(cli, howToConnect(finished.result))
}

/** Returns what the flags say, with files read and names turned into ids. */
export async function draftOf(cli: Cli, input: VmInput, location: string | undefined): Promise<VmDraft> {
  const { name, type, image, publicIp, onExpiry } = input
  const attached = await Promise.all((input.disk ?? []).map((text) => diskOf(cli, text)))
  return {
    name,
    type,
    location,
    image,
    ...(await keysOf(cli, input.sshKey ?? [])),
    ...(input.startupScript && { startup_script: await readTextFile(cli.io, input.startupScript) }),
    ...(input.shutdownScript && { shutdown_script: await readTextFile(cli.io, input.shutdownScript) }),
    ...(attached.length > 0 && { disks: attached }),
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

async function printDryRun(cli: Cli, request: VmCreate, estimate: object, price: string): Promise<void> {
  if (cli.format.kind !== 'table') return printData(cli, { request, estimate })
  print(cli, `${request.name}: ${request.type} in ${request.location}, ${price}`)
  print(cli, JSON.stringify(request, null, 2))
}

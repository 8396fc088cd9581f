import { isApiError, type VmCreate } from '@slipway/sdk'
import { askYes } from '../../core/ask.ts'
import type { Cli } from '../../core/cli.ts'
import { command, type OptionSpec } from '../../core/command.ts'
import { follow, type WaitFlags, waitOptions } from '../../core/progress.ts'
import { idOf } from '../../core/resource.ts'
import { Interrupted } from '../../errors/cli-error.ts'
import { print, printData } from '../../output/print.ts'
import { usd } from '../../output/text.ts'
import { addresses } from '../address/resource.ts'
import { templates } from '../template/resource.ts'
import { anyLocation, completeDraft } from './create-questions.ts'
import { typeOption, type VmInput, vmFieldsOf, vmOptionsWith } from './options.ts'
import { howToConnect } from './ssh-destination.ts'

export interface NewVmInput extends VmInput {
  name?: string
  location?: string[]
  template?: string
  address?: string
}

interface VmCreateInput extends NewVmInput, WaitFlags {
  dryRun?: boolean
  yes?: boolean
}

const locationsOption: OptionSpec = {
  flags: '--location <locations>',
  description: `location, or a list separated by commas to try in order; \`${anyLocation}\` means any location with free capacity`,
  complete: 'location',
  also: [anyLocation],
  isList: true,
}
const templateOption: OptionSpec = {
  flags: '--template <template>',
  description: 'instance template; other options replace its values',
  complete: 'template',
}
const addressOption: OptionSpec = {
  flags: '--address <address>',
  description: 'reserved public address (default: a dynamic address)',
  complete: 'address',
}
/** The options that describe a new VM. */
export const newVmOptions = [
  typeOption,
  locationsOption,
  templateOption,
  addressOption,
  ...vmOptionsWith({
    image: 'the newest Ubuntu image of the location, or its only image',
    sshKey: '~/.ssh/id_ed25519.pub, or another public key in ~/.ssh',
  }),
]

export const vmCreate = command<VmCreateInput>({
  name: 'create',
  summary: 'create a VM',
  details:
    'On a terminal, the command asks for missing values. It shows the price first, waits until the VM is running, and prints ' +
    'the ssh command to connect to it.',
  arguments: [{ syntax: '[name]', description: 'name of the VM (default: a generated name)' }],
  options: [
    ...newVmOptions,
    { flags: '--dry-run', description: 'show the price and the request without creating the VM' },
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
    'slipway vm create train-7 --template trainer',
    'slipway vm create train-8 --type a100.1x --location us-east1-a --custom-image trainer:v1',
    'slipway vm create train-7 --type a40.1x --location eu-north1-a --dry-run',
    'slipway vm create train-7 --type a40.1x --location eu-north1-a --no-wait',
  ],
  async run(cli, input) {
    const [location, ...others] = input.location ?? []
    const { request, hasAskedUser } = await requestOf(cli, input, location)
    // A command line without missing values needs no confirmation.
    let isConfirmed = !hasAskedUser || input.yes
    const confirm = async () => {
      isConfirmed ||= await askYes(cli, 'Create it?', true)
      if (!isConfirmed) throw new Interrupted()
    }
    for (const next of others) {
      try {
        return await create(cli, input, request, confirm)
      } catch (error) {
        if (!isApiError(error) || error.code !== 'out_of_stock') throw error
        cli.say(`${request.type ?? 'The type'} is out of stock in ${request.location}; trying ${next}.`)
        request.location = next
      }
    }
    await create(cli, input, request, confirm)
  },
})

/** Creates a VM in one location, waits for it, and prints how to connect. */
async function create(
  cli: Cli,
  input: VmCreateInput,
  request: VmCreate,
  confirm: () => Promise<void>,
): Promise<void> {
  const project_id = await cli.project()
  const estimate = await cli.client.estimateCreate({ project_id }, { vm: request })
  const price =
    estimate.usd_per_hour === null
      ? 'no price is set'
      : `${usd(estimate.usd_per_hour)} per hour, ${usd(estimate.usd_per_month)} per month`
  if (input.dryRun) return printDryRun(cli, request, estimate, price)
  cli.note(`${cli.noteColors.bold(request.name)}: ${summaryOf(request)}, ${price}`)
  await confirm()
  const { operation } = await cli.client.vmCreate({ project_id }, request)
  const finished = await follow(cli, `Creating ${request.name}`, operation, input)
  if (!finished) return
  if (cli.format.kind !== 'table') return printData(cli, finished.result)
  print(cli, howToConnect(finished.result))
}

/** Builds the request from the options. Missing values come from a template or from questions. */
export async function requestOf(cli: Cli, input: NewVmInput, location: string | undefined) {
  const { template, name, address } = input
  const fields = {
    ...(await vmFieldsOf(cli, input)),
    ...(address && { public_address_id: await idOf(cli, addresses, address) }),
  }
  if (template === undefined) return completeDraft(cli, { ...emptyDraft, ...fields, name, location })
  const instance_template_id = await idOf(cli, templates, template)
  const request: VmCreate = {
    name: name ?? `${template}-${Math.random().toString(36).slice(2, 6)}`,
    instance_template_id,
    ...fields,
    ...(location && { location }),
  }
  return { request, hasAskedUser: false }
}

const emptyDraft = { type: undefined, image: undefined, ssh_public_key: undefined }

/** Describes a request in a few words. */
const summaryOf = ({ type, location }: VmCreate) =>
  `${type ?? 'type from the template'}${location ? ` in ${location}` : ''}`

async function printDryRun(cli: Cli, request: VmCreate, estimate: object, price: string): Promise<void> {
  if (cli.format.kind !== 'table') return printData(cli, { request, estimate })
  print(cli, `${request.name}: ${summaryOf(request)}, ${price}`)
  print(cli, JSON.stringify(request, null, 2))
}

import { defaultImage } from '@slipway/contract/default-image'
import { isResourceName, resourceNameHint } from '@slipway/contract/names'
import type { ListItem, VmCreate } from '@slipway/sdk'
import { askChoice, askText } from '../../core/ask.ts'
import type { Cli } from '../../core/cli.ts'
import { resolveAmong } from '../../core/names.ts'
import { UsageError } from '../../errors/cli-error.ts'
import { usd } from '../../output/text.ts'
import { locations } from '../location/resource.ts'
import { findPublicKey } from './public-key.ts'

type Offer = ListItem<'offerList'>

type AskedField = 'name' | 'type' | 'location' | 'image' | 'ssh_public_key'

/** A request to create a VM. Values that the user can be asked for may be missing. */
export type VmDraft = Omit<VmCreate, AskedField> & { [K in AskedField]: string | undefined }

/** Adds missing values: asks for them on a terminal, or uses defaults. The type and location have no default. */
export async function completeDraft(
  cli: Cli,
  { ssh_public_key, image: wanted, ...draft }: VmDraft,
): Promise<{ request: VmCreate; hasAskedUser: boolean }> {
  const isComplete = Boolean(draft.type && draft.location)
  if (!isComplete && !cli.isInteractive) {
    const missing = [!draft.type && '--type', !draft.location && '--location'].filter(Boolean)
    throw new UsageError(`Missing: ${missing.join(' and ')}.`, [
      '`slipway offers` shows which types are available where.',
    ])
  }
  const filter = { project_id: await cli.project(), locations: draft.location }
  const offers = isComplete ? [] : await cli.client.collect('offerList', filter)
  const type = draft.type ?? (await askType(cli, offers))
  const location = draft.location ?? (await askLocation(cli, offers, type))
  const randomName = `${type.replace(/[^a-z0-9]+/g, '-')}-${Math.random().toString(36).slice(2, 6)}`
  const name = draft.name ?? (isComplete ? randomName : await askName(cli, randomName))
  const image = wanted ?? (draft.custom_image ? undefined : await findImage(cli, location))
  const key = ssh_public_key ?? (draft.ssh_key_ids ? undefined : await findPublicKey(cli))
  return {
    request: { ...draft, name, type, location, ...(image && { image }), ...(key && { ssh_public_key: key }) },
    hasAskedUser: !isComplete,
  }
}

async function askType(cli: Cli, offers: Offer[]): Promise<string> {
  const cheapest = new Map<string, Offer>()
  for (const offer of offers) {
    if (offer.quantity > 0 && offer.quota_left > 0 && !cheapest.has(offer.type))
      cheapest.set(offer.type, offer)
  }
  if (cheapest.size === 0) {
    throw new UsageError('No VM type is available within your quota.', [
      '`slipway offers` shows stock and remaining quota.',
    ])
  }
  return askChoice(
    cli,
    'Which type?',
    Array.from(cheapest.values(), (offer) => ({
      value: offer.type,
      label: `${offer.type.padEnd(15)} ${`${offer.gpu_count} x ${offer.gpu_model}`.padEnd(20)} ${`${usd(offer.usd_per_hour)}/h`.padStart(10)}`,
      hint: `${offer.cpu_cores} cores, ${offer.memory_gb} GB`,
    })),
  )
}

async function askLocation(cli: Cli, offers: Offer[], type: string): Promise<string> {
  const ofType = offers.filter((offer) => offer.type === type)
  if (ofType.length === 0)
    throw new UsageError(`Unknown VM type ${type}.`, ['`slipway offers` lists the types.'])
  const fitting = ofType.filter((offer) => offer.quantity > 0)
  if (fitting.length === 0) {
    throw new UsageError(`${type} is out of stock in every location.`, [
      '`slipway offers --available` shows what is in stock.',
    ])
  }
  if (fitting.length === 1 && fitting[0]) return fitting[0].location
  return askChoice(
    cli,
    'Which location?',
    fitting.map((offer) => ({ value: offer.location, hint: `${offer.quantity} free` })),
  )
}

const askName = (cli: Cli, initial: string) =>
  askText(cli, 'Name', {
    initial,
    validate: (text) => (isResourceName(text) ? undefined : resourceNameHint),
  })

/** Lets the service choose a location where the VM fits. */
export const anyLocation = 'any'

/** Returns the default image of a location. */
async function findImage(cli: Cli, location: string): Promise<string> {
  const images = await cli.client.collect('imageList', { project_id: await cli.project() })
  const isUsable = (image: { locations: string[] }) =>
    location === anyLocation ? image.locations.length > 0 : image.locations.includes(location)
  const names = images.filter(isUsable).map(({ name }) => name)
  // If the location does not exist, resolveAmong throws a clearer error.
  if (names.length === 0) resolveAmong('location', location, await locations.list(cli), locations.named)
  if (names.length === 0)
    throw new UsageError(`No image is available in ${location}.`, [
      `Images are available in ${[...new Set(images.flatMap((image) => image.locations))].join(', ')}.`,
    ])
  const best = defaultImage(names)
  if (!best)
    throw new UsageError(`${location} has no Ubuntu image. Choose an image with --image.`, [names.join(', ')])
  return best
}

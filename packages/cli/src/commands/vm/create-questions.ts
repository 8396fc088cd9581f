import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import type { Image, VmCreate } from '@slipway/sdk'
import { askChoice, askText } from '../../core/ask.ts'
import type { Cli } from '../../core/cli.ts'
import { readTextFile } from '../../core/parse.ts'
import { UsageError } from '../../errors/cli-error.ts'
import { usd } from '../../output/text.ts'
import { findOffers, type Offer } from '../offers/find-offers.ts'

type Asked = 'name' | 'type' | 'location' | 'image' | 'ssh_public_key'
export type Wishes = Omit<VmCreate, Asked> & { [K in Asked]: string | undefined }

/** Fills in what the command line left open: by asking on a terminal, by the plain default elsewhere. */
export async function completeRequest(
  cli: Cli,
  wishes: Wishes,
): Promise<{ request: VmCreate; wasAsked: boolean }> {
  const isComplete = Boolean(wishes.type && wishes.location)
  if (!isComplete && !cli.isInteractive) {
    const missing = [!wishes.type && '--type', !wishes.location && '--location'].filter(Boolean)
    throw new UsageError(`Missing: ${missing.join(' and ')}.`, [
      '`slipway offers` shows what can be had where.',
    ])
  }
  const offers = isComplete ? [] : await findOffers(cli, wishes.location ? { location: wishes.location } : {})
  const type = wishes.type ?? (await askType(offers))
  const location = wishes.location ?? (await askLocation(offers, type))
  const madeUpName = `${type.replace(/[^a-z0-9]+/g, '-')}-${Math.random().toString(36).slice(2, 6)}`
  const name = wishes.name ?? (isComplete ? madeUpName : await askName(madeUpName))
  const image = wishes.image ?? (await defaultImage(cli, location))
  const ssh_public_key = wishes.ssh_public_key ?? (await findPublicKey(cli))
  return { request: { ...wishes, name, type, location, image, ssh_public_key }, wasAsked: !isComplete }
}

async function askType(offers: Offer[]): Promise<string> {
  const cheapest = new Map<string, Offer>()
  for (const offer of offers) {
    if (offer.available && offer.quota_left !== 0 && !cheapest.has(offer.type))
      cheapest.set(offer.type, offer)
  }
  if (cheapest.size === 0) throw new UsageError('Nothing can be had now.', ['See `slipway offers`.'])
  return askChoice(
    'Which type?',
    Array.from(cheapest.values(), (offer) => ({
      value: offer.type,
      label: `${offer.type.padEnd(15)} ${`${offer.num_gpu} x ${offer.gpu}`.padEnd(20)} ${`${usd(offer.usd_per_hour)}/h`.padStart(10)}`,
      hint: `${offer.cpu_cores} cores, ${offer.memory_gb} GB`,
    })),
  )
}

async function askLocation(offers: Offer[], type: string): Promise<string> {
  const fitting = offers.filter((offer) => offer.type === type && offer.available)
  if (fitting.length === 0) throw new UsageError(`${type} can be had nowhere now.`, ['See `slipway offers`.'])
  if (fitting.length === 1 && fitting[0]) return fitting[0].location
  return askChoice(
    'Where?',
    fitting.map((offer) => ({ value: offer.location, hint: `${offer.quantity} free` })),
  )
}

const namePattern = /^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$/
const askName = (initial: string) =>
  askText('Name', {
    initial,
    validate: (text) => (namePattern.test(text) ? undefined : 'Letters, digits, _ and -, at most 63.'),
  })

/** The only image there, or the newest Ubuntu; of one release, the one made for GPUs. */
export async function defaultImage(cli: Cli, location: string): Promise<string> {
  const images = await cli.client.collect('imageList', { project_id: await cli.project() })
  const there = images.filter((image) => image.locations.includes(location))
  const fitting = there.length === 1 ? there : there.filter((image) => /^ubuntu/.test(image.name))
  const [best] = fitting.sort((one, other) => rank(other) - rank(one))
  if (there.length === 0)
    throw new UsageError(`No image can be used in ${location}.`, [
      `There are some in ${[...new Set(images.flatMap((image) => image.locations))].join(', ')}.`,
    ])
  if (!best)
    throw new UsageError(`No Ubuntu image is known in ${location}: choose one with --image.`, [
      there.map((image) => image.name).join(', '),
    ])
  return best.name
}

function rank(image: Image): number {
  const release = Number(/^ubuntu-?(\d+\.\d+)/.exec(image.name)?.[1] ?? 0)
  const isForGpus = /nvidia|cuda/.test(image.name)
  const isLatest = image.name.endsWith(':latest')
  return release * 100 + (isForGpus ? 2 : 0) + (isLatest ? 1 : 0)
}

const preferredKeys = ['id_ed25519.pub', 'id_ecdsa.pub', 'id_rsa.pub']

/** The key in ~/.ssh; with several, the question or the strongest. */
async function findPublicKey(cli: Cli): Promise<string> {
  const folder = join(homedir(), '.ssh')
  const found = existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith('.pub')) : []
  const sorted = [
    ...preferredKeys.filter((name) => found.includes(name)),
    ...found.filter((name) => !preferredKeys.includes(name)),
  ]
  const [first] = sorted
  if (first === undefined) {
    if (!cli.isInteractive)
      throw new UsageError('No public key was found in ~/.ssh: name one with --ssh-key.')
    const path = await askText('Public key file', {
      validate: (text) =>
        existsSync(text) ? undefined : 'There is no such file. `ssh-keygen -t ed25519` makes a key.',
    })
    return readTextFile(path).trim()
  }
  const isClear = sorted.length === 1 || first === preferredKeys[0] || !cli.isInteractive
  const chosen = isClear
    ? first
    : await askChoice(
        'Which public key?',
        sorted.map((name) => ({ value: name })),
        first,
      )
  cli.note(cli.noteColors.dim(`Using the key ~/.ssh/${chosen}`))
  return readFileSync(join(folder, chosen), 'utf8').trim()
}

import { basename } from 'node:path'
import { parseArgs } from 'node:util'
import { gpuImageOptions, runBuildGpu } from './build-image-command.ts'
import { readConfig, withDatabase } from './command-setup.ts'
import { type Config, ConfigError, type IncusConfig } from './config/index.ts'
import { fullImageName, isImageName } from './domain/guest/images.ts'
import type { EngineImage } from './engines/engine.ts'
import { type Images, type IncusImageSource, withImages } from './engines/incus/storage/images.ts'
import type { ImageFormat } from './engines/qemu/images/image-header.ts'
import { buildMiniGuest, importImage } from './engines/qemu/index.ts'
import { imagesDir } from './engines/qemu/paths.ts'
import type { Database } from './postgres/database.ts'
import { offerImages } from './setup/apply-config.ts'
import { type LocationRow, listLocations } from './store/fleet/locations.ts'

const usage = `Usage: slipway-server images build mini [--data-dir DIR]
       slipway-server images build gpu [--output FILE] [--suite SUITE] [--mirror URL] [--security-mirror URL]
                                       [--without-driver] [--package NAME]... [--hook PROGRAM]
       slipway-server images import FILE|URL --sha256 HEX --format FORMAT [--name NAME] [--tag TAG]... [--data-dir DIR] [--config FILE]
       slipway-server images adopt ALIAS [--tag TAG]... [--data-dir DIR] [--config FILE]

build mini creates the mini guest of the qemu engine. build gpu creates a disk image of Debian with the NVIDIA driver,
Docker and the reporter of GPU metrics, and does not import it; SUITE is a release of Debian (default bookworm), and the
mirrors default to those that apt uses on this machine. PROGRAM runs in the image as root.
import adds a disk image to every location of the qemu and incus engines; FORMAT is qcow2 or raw and is never detected
automatically. adopt adds an image that every incus location already has under the name ALIAS.
An image with the tag slipway-guest reports GPU metrics.
DIR and FILE are the data directory and the configuration of the service (default .slipway, slipway.toml).`

const options = {
  sha256: { type: 'string' },
  format: { type: 'string' },
  name: { type: 'string' },
  tag: { type: 'string', multiple: true },
  ...gpuImageOptions,
  'data-dir': { type: 'string' },
  config: { type: 'string' },
  help: { type: 'boolean' },
} as const

export async function runImagesCommand(argv: string[]): Promise<void> {
  const { positionals, values } = parseArgs({ args: argv, allowPositionals: true, options })
  if (values.help) return console.log(usage)
  const [verb, what] = positionals
  if (verb === 'build' && what === 'gpu') return runBuildGpu(values, progress)
  // Without a configuration file, `--engine` determines the demo's locations.
  const flags = ['--engine', 'incus']
  if (values['data-dir']) flags.push('--data-dir', values['data-dir'])
  if (values.config) flags.push('--config', values.config)
  const config = readConfig(flags)
  const { dataDir } = config.server
  if (verb === 'build' && what === 'mini') {
    await buildMiniGuest(dataDir, progress)
    return console.log(`mini:latest is ready in ${dataDir}`)
  }
  const tags = [...new Set(['imported', 'cloud-init', ...(values.tag ?? []).map(requireTag)])]
  if (verb === 'adopt' && what)
    return withCatalogue(config, (catalogue) => adopt(catalogue, requireName(what), tags))
  const { sha256 } = values
  if (verb !== 'import' || !what || !sha256) throw new ConfigError(usage)
  const format = requireFormat(values.format)
  const name = requireName(values.name ?? nameOf(what))
  await withCatalogue(config, (catalogue) => importInto(catalogue, { what, sha256, name, format, tags }))
}

function requireFormat(format: string | undefined): ImageFormat {
  if (format === 'qcow2' || format === 'raw') return format
  throw new ConfigError(
    `${format === undefined ? 'Missing --format' : `Unknown format ${format}`}. Supported: qcow2, raw. If you trust the file, run \`qemu-img info FILE\` to see its format.`,
  )
}

const progress = (line: string) => console.error(`  ${line}`)

/** The database, and the locations in which images can be offered. */
interface Catalogue {
  database: Database
  config: Config
  locations: LocationRow[]
}

const withCatalogue = (config: Config, work: (catalogue: Catalogue) => Promise<void>) =>
  withDatabase(config, async (database) =>
    work({ database, config, locations: await listLocations(database) }),
  )

async function importInto(
  catalogue: Catalogue,
  given: { what: string; sha256: string; name: string; format: ImageFormat; tags: string[] },
): Promise<void> {
  const { what, sha256, name, format, tags } = given
  const { dataDir } = catalogue.config.server
  const source = await importImage(dataDir, what, sha256, name, format, progress)
  const file = `${imagesDir(dataDir)}/${source.file}`
  const published = await inEveryIncus(catalogue, name, (images) =>
    images.publish(file, source.sha256, name, format),
  )
  const description = `Imported from ${what.split('/').at(-1)}`
  await offer(catalogue, { name, description, tags, source: { ...source, ...published } }, ['qemu', 'incus'])
}

async function adopt(catalogue: Catalogue, name: string, tags: string[]): Promise<void> {
  const source = await inEveryIncus(catalogue, name, (images) => images.adopt(name))
  if (!source)
    throw new ConfigError(
      'no location uses the incus engine yet: start the service once, then run this command again',
    )
  const description = 'Adopted from Incus'
  await offer(catalogue, { name, description, tags, source }, ['incus'])
}

/**
 * Runs `work` for every incus location, and checks that the name refers to the same image in all of them. Returns null if no
 * location uses the incus engine.
 */
async function inEveryIncus(
  { locations, config }: Catalogue,
  name: string,
  work: (images: Images) => Promise<IncusImageSource>,
): Promise<IncusImageSource | null> {
  let found: IncusImageSource | null = null
  for (const location of locations.filter(({ engine }) => engine === 'incus')) {
    progress(`${name} in ${location.name}`)
    const source = await withImages(incusConfigOf(config, location.name), work)
    if (found && found.fingerprint !== source.fingerprint)
      throw new ConfigError(
        `${name} is a different image in ${location.name} than in the previous locations: use another name`,
      )
    found = source
  }
  return found
}

function incusConfigOf({ locations }: Config, name: string): IncusConfig {
  const location = locations.find((one) => one.name === name)
  if (location?.engine !== 'incus')
    throw new ConfigError(
      `the configuration has no incus location ${name}: specify the right file with --config`,
    )
  return location.incus
}

async function offer(
  catalogue: Catalogue,
  image: EngineImage,
  engines: LocationRow['engine'][],
): Promise<void> {
  const locations = catalogue.locations.filter(({ engine }) => engines.includes(engine))
  for (const location of locations) await offerImages(catalogue.database, location.name, [image])
  console.log(
    locations.length > 0
      ? `${image.name} is available in ${locations.map((location) => location.name).join(', ')}`
      : 'No location uses the qemu or incus engine yet: start the service with --engine, then run this command again.',
  )
}

function requireName(given: string): string {
  const name = fullImageName(given)
  if (isImageName(name)) return name
  throw new ConfigError(`${given} is not a valid image name: choose another one with --name`)
}

function requireTag(tag: string): string {
  if (/^[a-z0-9][a-z0-9._-]{0,59}$/.test(tag)) return tag
  throw new ConfigError(
    `${JSON.stringify(tag)} is not a valid tag: use lowercase letters, digits, '.', '_' and '-'`,
  )
}

/** Returns `debian-12-generic-arm64` for `https://…/debian-12-generic-arm64.qcow2`. */
function nameOf(source: string): string {
  const file = basename(source.replace(/[?#].*$/, ''))
  return file.replace(/\.(qcow2|img|raw)$/, '')
}

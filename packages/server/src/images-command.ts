import { readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { parseArgs } from 'node:util'
import { type Config, ConfigError, type IncusConfig, loadConfig } from './config/index.ts'
import { fullImageName, isImageName } from './domain/guest/images.ts'
import type { EngineImage } from './engines/engine.ts'
import { type Images, type IncusImageSource, withImages } from './engines/incus/images.ts'
import { buildMiniGuest, importImage } from './engines/qemu/index.ts'
import { imagesDir } from './engines/qemu/paths.ts'
import { Database } from './postgres/database.ts'
import { openEmbedded } from './postgres/embedded/index.ts'
import { migrate } from './postgres/migrate.ts'
import { offerImages } from './setup/apply-config.ts'
import { type LocationRow, listLocations } from './store/fleet/locations.ts'

const usage = `Usage: slipway-server images build mini [--data-dir DIR]
       slipway-server images import FILE|URL --sha256 HEX [--name NAME] [--data-dir DIR] [--config FILE]
       slipway-server images adopt ALIAS [--data-dir DIR] [--config FILE]

build makes the guest of the qemu engine's demo. import takes a disk image (qcow2 or raw) for every location of the qemu
and incus engines. adopt takes one that the Incus of every incus location has already.
DIR and FILE are the data directory and the configuration of the service (default .slipway, slipway.toml).`

/** Makes or takes an image, and offers it in the locations whose engine has it. */
export async function runImagesCommand(argv: string[]): Promise<void> {
  const { positionals, values } = parseArgs({
    args: argv,
    allowPositionals: true,
    options: {
      sha256: { type: 'string' },
      name: { type: 'string' },
      'data-dir': { type: 'string' },
      config: { type: 'string' },
      help: { type: 'boolean' },
    },
  })
  if (values.help) return console.log(usage)
  const [verb, what] = positionals
  const config = readConfig(values)
  const { dataDir } = config.server
  if (verb === 'build' && what === 'mini') {
    await buildMiniGuest(dataDir, progress)
    return console.log(`mini:latest is ready in ${dataDir}`)
  }
  if (verb === 'adopt' && what) return withShelf(config, (shelf) => adopt(shelf, named(what)))
  const { sha256 } = values
  if (verb !== 'import' || !what || !sha256) throw new ConfigError(usage)
  const name = named(values.name ?? nameOf(what))
  await withShelf(config, (shelf) => take(shelf, dataDir, { what, sha256, name }))
}

const progress = (line: string) => console.error(`  ${line}`)

/** `--engine` says what the locations are where no file names them. */
function readConfig(values: { 'data-dir'?: string | undefined; config?: string | undefined }): Config {
  const flags = ['--engine', 'incus']
  if (values['data-dir']) flags.push('--data-dir', values['data-dir'])
  if (values.config) flags.push('--config', values.config)
  return loadConfig(flags, process.env, (path) => readFileSync(path, 'utf8'))
}

/** The images of a deployment, and where its engines keep them. */
interface Shelf {
  database: Database
  config: Config
  locations: LocationRow[]
}

async function withShelf(config: Config, work: (shelf: Shelf) => Promise<void>): Promise<void> {
  const embedded = config.database.url
    ? null
    : await openEmbedded({ dataDir: config.server.dataDir, log: () => {} })
  const url = embedded?.url ?? config.database.url
  await migrate(url)
  const database = new Database({ url, poolSize: 2 })
  try {
    await work({ database, config, locations: await listLocations(database) })
  } finally {
    await database.close()
    await embedded?.stop()
  }
}

async function take(
  shelf: Shelf,
  dataDir: string,
  { what, sha256, name }: { what: string; sha256: string; name: string },
): Promise<void> {
  const source = await importImage(dataDir, what, sha256, name, progress)
  const file = `${imagesDir(dataDir)}/${source.file}`
  const published = await inEveryIncus(shelf, name, (images) => images.publish(file, source.sha256, name))
  const description = `Imported from ${what.split('/').at(-1)}`
  const image = { name, description, tags: ['imported', 'cloud-init'], source: { ...source, ...published } }
  await offer(shelf, image, ['qemu', 'incus'])
}

async function adopt(shelf: Shelf, name: string): Promise<void> {
  const source = await inEveryIncus(shelf, name, (images) => images.adopt(name))
  if (!source)
    throw new ConfigError('no location runs the incus engine yet: start the service, then adopt again')
  const description = 'Adopted from Incus'
  await offer(shelf, { name, description, tags: ['imported', 'cloud-init'], source }, ['incus'])
}

/** An image is the same wherever it has its name: null where no location runs the engine. */
async function inEveryIncus(
  { locations, config }: Shelf,
  name: string,
  work: (images: Images) => Promise<IncusImageSource>,
): Promise<IncusImageSource | null> {
  let found: IncusImageSource | null = null
  for (const location of locations.filter(({ engine }) => engine === 'incus')) {
    progress(`${name} in ${location.name}`)
    const source = await withImages(incusConfigOf(config, location.name), work)
    if (found && found.fingerprint !== source.fingerprint)
      throw new ConfigError(
        `${name} is not the same image in ${location.name} as elsewhere: name it differently`,
      )
    found = source
  }
  return found
}

function incusConfigOf({ locations }: Config, name: string): IncusConfig {
  const location = locations.find((one) => one.name === name)
  if (location?.engine !== 'incus')
    throw new ConfigError(`the configuration does not have the location ${name}: name its file with --config`)
  return location.incus
}

async function offer(shelf: Shelf, image: EngineImage, engines: LocationRow['engine'][]): Promise<void> {
  const locations = shelf.locations.filter(({ engine }) => engines.includes(engine))
  for (const location of locations) await offerImages(shelf.database, location.name, [image])
  console.log(
    locations.length > 0
      ? `${image.name} can be used in ${locations.map((location) => location.name).join(', ')}`
      : 'No location runs the qemu or incus engine yet: start the service with --engine, then import again.',
  )
}

function named(given: string): string {
  const name = fullImageName(given)
  if (isImageName(name)) return name
  throw new ConfigError(`${given} cannot be the name of an image: give another one with --name`)
}

/** `https://…/debian-12-generic-arm64.qcow2` is called `debian-12-generic-arm64`. */
function nameOf(source: string): string {
  const file = basename(source.replace(/[?#].*$/, ''))
  return file.replace(/\.(qcow2|img|raw)$/, '')
}

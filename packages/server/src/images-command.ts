import { basename } from 'node:path'
import { parseArgs } from 'node:util'
import { ConfigError, loadConfig } from './config/index.ts'
import { buildMiniGuest, importImage } from './engines/qemu/index.ts'
import { offerImages } from './setup/apply-config.ts'
import { Database } from './store/database.ts'
import { openEmbedded } from './store/embedded/index.ts'
import { listLocations } from './store/fleet/locations.ts'
import { migrate } from './store/migrate.ts'

const usage = `Usage: slipway-server images build mini [--data-dir DIR]
       slipway-server images import FILE|URL --sha256 HEX [--name NAME] [--data-dir DIR]

Images are for the qemu engine; DIR is the data directory of the service that runs it (default .slipway).`

/** Makes or takes an image for the qemu engine, and offers it in every location that runs it. */
export async function runImagesCommand(argv: string[]): Promise<void> {
  const { positionals, values } = parseArgs({
    args: argv,
    allowPositionals: true,
    options: {
      sha256: { type: 'string' },
      name: { type: 'string' },
      'data-dir': { type: 'string' },
      help: { type: 'boolean' },
    },
  })
  if (values.help) return console.log(usage)
  const [verb, what] = positionals
  const config = loadConfig(values['data-dir'] ? ['--data-dir', values['data-dir']] : [], process.env, () => {
    throw Object.assign(new Error('no file'), { code: 'ENOENT' })
  })
  const { dataDir } = config.server
  const progress = (line: string) => console.error(`  ${line}`)
  if (verb === 'build' && what === 'mini') {
    await buildMiniGuest(dataDir, progress)
    return console.log(`mini:latest is ready in ${dataDir}`)
  }
  if (verb !== 'import' || !what || !values.sha256) throw new ConfigError(usage)
  const given = values.name ?? nameOf(what)
  const name = given.includes(':') ? given : `${given}:latest`
  const embedded = config.database.url ? null : await openEmbedded({ dataDir, log: () => {} })
  const url = embedded?.url ?? config.database.url
  await migrate(url)
  const database = new Database({ url, poolSize: 2 })
  try {
    const source = await importImage(dataDir, what, values.sha256, name, progress)
    const image = {
      name,
      description: `Imported from ${what.split('/').at(-1)}`,
      tags: ['imported', 'cloud-init'],
      source,
    }
    const locations = (await listLocations(database)).filter(({ engine }) => engine === 'qemu')
    for (const location of locations) await offerImages(database, location.name, [image])
    console.log(
      locations.length > 0
        ? `${name} can be used in ${locations.map((location) => location.name).join(', ')}`
        : 'No location runs the qemu engine yet: start the service with --engine qemu, then import again.',
    )
  } finally {
    await database.close()
    await embedded?.stop()
  }
}

/** `https://…/debian-12-generic-arm64.qcow2` is called `debian-12-generic-arm64`. */
function nameOf(source: string): string {
  const file = basename(source.replace(/[?#].*$/, ''))
  return file.replace(/\.(qcow2|img|raw)$/, '')
}

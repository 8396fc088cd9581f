// Prepares the three published packages. Their sources import other packages of the workspace; the published
// packages do not.
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { build } from '../build.mjs'
import { root } from '../install.mjs'
import { buildSdk } from './sdk.mjs'

const manifestOf = (path) => JSON.parse(readFileSync(join(root, path, 'package.json'), 'utf8'))

/** Programs export only their manifest, because they are run, not imported. */
const manifestExport = { './package.json': './package.json' }

/** For each folder: the published name, the package's own part of package.json, and its files. */
const publishedPackages = {
  sdk: {
    name: '@slipway/sdk',
    manifest: () => ({
      types: './dist/index.d.ts',
      exports: {
        '.': { types: './dist/index.d.ts', default: './dist/index.js' },
        './testing': { types: './dist/testing.d.ts', default: './dist/testing.js' },
        ...manifestExport,
      },
      sideEffects: false,
    }),
    fill: (directory) => buildSdk(join(directory, 'dist')),
  },
  cli: {
    name: 'slipway',
    manifest: ({ bin }) => ({ bin, exports: manifestExport }),
    fill: (directory) => copy('packages/cli', directory, ['bin', 'dist/slipway.js']),
  },
  server: {
    name: '@slipway/server',
    manifest: ({ bin, dependencies }) => ({
      bin,
      exports: manifestExport,
      // The contract is part of the bundle, but its dependencies are not.
      dependencies: withoutWorkspacePackages({
        ...dependencies,
        ...manifestOf('packages/contract').dependencies,
      }),
    }),
    fill(directory) {
      const built = ['dist/main.js', 'dist/chunks', 'dist/qemu-forwarder.js', 'dist/console']
      copy('packages/server', directory, ['bin', 'migrations', ...built])
      rmSync(join(directory, 'dist/console/.source-hash'))
      copy('.', directory, ['slipway.example.toml'])
      const units = [
        'slipway.service',
        'slipway-agent.service',
        'slipway-backup.service',
        'slipway-backup.timer',
      ]
      copy('docs/operate', directory, units)
    },
  },
}

/** Writes the packages, ready to be packed, to folders in `directory`. */
export async function stagePackages(directory) {
  await build()
  const { version, license, repository, engines } = manifestOf('.')
  const staged = []
  for (const [folder, { name, manifest, fill }] of Object.entries(publishedPackages)) {
    const target = join(directory, folder)
    const source = manifestOf(`packages/${folder}`)
    rmSync(target, { recursive: true, force: true })
    mkdirSync(target, { recursive: true })
    await fill(target)
    const files = readdirSync(target).sort()
    copy('.', target, ['LICENSE'])
    copy(`packages/${folder}`, target, ['README.md'])
    const common = { name, version, description: source.description, license }
    const origin = { repository: { ...repository, directory: `packages/${folder}` } }
    const fullManifest = { ...common, ...origin, type: 'module', engines, ...manifest(source), files }
    writeFileSync(join(target, 'package.json'), `${JSON.stringify(fullManifest, null, 2)}\n`)
    staged.push({ name, version, directory: target, manifest: fullManifest })
  }
  return staged
}

function copy(from, to, paths) {
  const filter = (path) => !path.endsWith('.map')
  for (const path of paths) cpSync(join(root, from, path), join(to, path), { recursive: true, filter })
}

const withoutWorkspacePackages = (dependencies) =>
  Object.fromEntries(
    Object.entries(dependencies)
      .filter(([name]) => !name.startsWith('@slipway/'))
      .sort(([left], [right]) => (left < right ? -1 : 1)),
  )

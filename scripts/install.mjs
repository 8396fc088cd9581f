import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { exitWithMessage, phase } from './phase.mjs'

export const root = fileURLToPath(new URL('..', import.meta.url))
const minimumNode = [20, 20]
const recordPath = join(root, 'node_modules/.slipway-install')

/**
 * `run` has the packages for building and running the service, without devDependencies. `all` adds the tools
 * for tests and releases.
 */
const groups = {
  run: { title: 'Installing packages', flags: ['--omit=dev'] },
  all: { title: 'Installing packages and test tools', flags: [] },
}

/**
 * Installs a group of packages from package-lock.json unless it is already installed. Installed packages are
 * not touched, so that a service that runs from this checkout keeps running. If the installation fails,
 * prints one line and exits.
 */
export function ensureInstalled(group) {
  checkNode()
  const lockHash = createHash('sha256').update(readFileSync(join(root, 'package-lock.json')))
  const recordOf = (name) => `${lockHash.copy().digest('hex')} ${process.platform}-${process.arch} ${name}\n`
  const record = existsSync(recordPath) ? readFileSync(recordPath, 'utf8') : ''
  if (record === recordOf(group) || record === recordOf('all')) return
  if (!isInstalled(group)) phase(groups[group].title, () => install(groups[group].flags))
  writeFileSync(recordPath, recordOf(group))
}

function install(groupFlags) {
  const [command, ...args] = process.env.npm_execpath ? [process.execPath, process.env.npm_execpath] : ['npm']
  // npm ci begins by deleting node_modules, so it is used only if there is none.
  const verb = existsSync(join(root, 'node_modules')) ? ['install', '--no-save'] : ['ci']
  // No package needs its install scripts, so they are disabled regardless of npm's configuration.
  const flags = [...groupFlags, '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error']
  const stdio = ['ignore', 'ignore', 'inherit']
  const { status, error } = spawnSync(command, [...args, ...verb, ...flags], { cwd: root, stdio })
  if (status !== 0) exitWithMessage(`npm ${verb[0]} failed${error ? `: ${error.message}` : ''}`)
}

function checkNode() {
  const [major, minor] = process.versions.node.split('.').map(Number)
  const [minimumMajor, minimumMinor] = minimumNode
  if (major > minimumMajor || (major === minimumMajor && minor >= minimumMinor)) return
  exitWithMessage(`Slipway needs Node.js ${minimumNode.join('.')} or later; this is ${process.versions.node}`)
}

/** Returns whether npm's list of installed packages has every package of the group in its locked version. */
export function isInstalled(group) {
  const listPath = join(root, 'node_modules/.package-lock.json')
  if (!existsSync(listPath)) return false
  const present = JSON.parse(readFileSync(listPath, 'utf8')).packages
  const wanted = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')).packages
  return Object.entries(wanted).every(([path, { version, optional, dev }]) => {
    if (!path.startsWith('node_modules/') || (dev && group === 'run')) return true
    return present[path] ? present[path].version === version : optional === true
  })
}

import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { leave, phase } from './phase.mjs'

export const root = fileURLToPath(new URL('..', import.meta.url))
const oldestNode = [20, 20]
const recordPath = join(root, 'node_modules/.slipway-install')

/** `run` is what the service is built and run with: no devDependencies. `all` adds the tools of tests and releases. */
const groups = {
  run: { title: 'Installing packages', flags: ['--omit=dev'] },
  all: { title: 'Installing packages and test tools', flags: [] },
}

/**
 * Installs a group of the packages of package-lock.json unless it is there. Packages that are there already stay
 * untouched, so that a service that runs from this checkout keeps running. Exits with one line where this cannot work.
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
  // npm ci begins by deleting node_modules, so it is for a checkout that has none.
  const verb = existsSync(join(root, 'node_modules')) ? ['install', '--no-save'] : ['ci']
  // No package needs its install scripts, so none run, whatever npm's configuration says.
  const flags = [...groupFlags, '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error']
  const stdio = ['ignore', 'ignore', 'inherit']
  const { status, error } = spawnSync(command, [...args, ...verb, ...flags], { cwd: root, stdio })
  if (status !== 0) leave(`npm ${verb[0]} failed${error ? `: ${error.message}` : ''}`)
}

function checkNode() {
  const [major, minor] = process.versions.node.split('.').map(Number)
  const [oldestMajor, oldestMinor] = oldestNode
  if (major > oldestMajor || (major === oldestMajor && minor >= oldestMinor)) return
  leave(`Slipway needs Node.js ${oldestNode.join('.')} or later; this is ${process.versions.node}`)
}

/** Returns whether npm's own list of what is in node_modules has every package of the group, in the version of the lock. */
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

import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = fileURLToPath(new URL('..', import.meta.url))
const oldestNode = [20, 20]
const recordPath = join(root, 'node_modules/.slipway-install')

/** Installs the packages of package-lock.json unless they are there. Leaves, with one line, where that cannot work. */
export function ensureInstalled() {
  checkNode()
  const record = `${createHash('sha256')
    .update(readFileSync(join(root, 'package-lock.json')))
    .digest('hex')} ${process.platform}-${process.arch}\n`
  if (existsSync(recordPath) && readFileSync(recordPath, 'utf8') === record) return
  if (!isInstalled()) {
    console.error('Installing packages (npm ci) …')
    const [command, ...args] = process.env.npm_execpath
      ? [process.execPath, process.env.npm_execpath]
      : ['npm']
    // Nothing here needs install scripts, so none are run, whatever npm's configuration says.
    const flags = ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error']
    const { status, error } = spawnSync(command, [...args, ...flags], { cwd: root, stdio: ['ignore', 2, 2] })
    if (status !== 0) leave(`npm ci failed${error ? `: ${error.message}` : ''}`)
  }
  writeFileSync(recordPath, record)
}

function checkNode() {
  const [major, minor] = process.versions.node.split('.').map(Number)
  const [oldestMajor, oldestMinor] = oldestNode
  if (major > oldestMajor || (major === oldestMajor && minor >= oldestMinor)) return
  leave(`Slipway needs Node.js ${oldestNode.join('.')} or later; this is ${process.versions.node}`)
}

/** Whether npm's own list of what is in node_modules agrees with the lock. */
export function isInstalled() {
  const listPath = join(root, 'node_modules/.package-lock.json')
  if (!existsSync(listPath)) return false
  const present = JSON.parse(readFileSync(listPath, 'utf8')).packages
  const wanted = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')).packages
  return Object.entries(wanted).every(([path, { version, optional }]) => {
    if (!path.startsWith('node_modules/')) return true
    return present[path] ? present[path].version === version : optional === true
  })
}

export function leave(message) {
  console.error(message)
  process.exit(1)
}

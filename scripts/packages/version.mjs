// Runs inside `npm version`, which has written the new version to the root's package.json. Copies it to the
// packages, to their dependencies on each other, to the lock file and to the OpenAPI document.
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../install.mjs'

const read = (path) => JSON.parse(readFileSync(join(root, path), 'utf8'))
const write = (path, value) => writeFileSync(join(root, path), `${JSON.stringify(value, null, 2)}\n`)

const { version, workspaces } = read('package.json')

function setVersion(manifest) {
  manifest.version = version
  for (const group of [manifest.dependencies ?? {}, manifest.devDependencies ?? {}])
    for (const name of Object.keys(group)) if (name.startsWith('@slipway/')) group[name] = version
}

for (const path of workspaces) {
  const manifest = read(`${path}/package.json`)
  setVersion(manifest)
  write(`${path}/package.json`, manifest)
}
const lock = read('package-lock.json')
lock.version = version
for (const path of ['', ...workspaces]) setVersion(lock.packages[path])
write('package-lock.json', lock)
execFileSync(process.execPath, [join(root, 'scripts/generate.mjs')], { stdio: 'inherit' })

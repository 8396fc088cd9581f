// Completes package-lock.json: npm leaves out an optional platform package that the registry could not give it, and
// `npm ci` then refuses the lock on every platform. With --check only tells whether something is missing.
import { readFileSync, writeFileSync } from 'node:fs'

const path = new URL('../package-lock.json', import.meta.url)
const lock = JSON.parse(readFileSync(path, 'utf8'))
const SYSTEMS = ['android', 'darwin', 'freebsd', 'linux', 'openharmony', 'win32', 'wasm32']
const PROCESSORS = ['arm64', 'arm', 'ia32', 'ppc64', 's390x', 'x64']

/** Reads `@scope/binding-linux-arm64-gnu` as the platform that it is made for, so that npm skips it elsewhere. */
function platformOf(name) {
  const words = name.split(/[-/]/)
  const os = SYSTEMS.find((system) => words.includes(system))
  if (!os) throw new Error(`${name}: cannot tell its platform from its name`)
  if (os === 'wasm32') return { cpu: ['wasm32'] }
  const cpu = PROCESSORS.find((processor) => words.includes(processor))
  const libc = words.includes('musl') ? ['musl'] : words.includes('gnu') ? ['glibc'] : undefined
  return { cpu: cpu ? [cpu] : undefined, os: [os], libc }
}

const missing = []
for (const entry of Object.values(lock.packages)) {
  for (const [name, version] of Object.entries(entry.optionalDependencies ?? {})) {
    const key = `node_modules/${name}`
    if (lock.packages[key] || !/^\d/.test(version)) continue
    lock.packages[key] = { version, ...platformOf(name), dev: entry.dev, optional: true }
    missing.push(name)
  }
}

if (missing.length > 0 && process.argv.includes('--check')) {
  console.error(`package-lock.json lacks ${missing.join(', ')}: run node scripts/lock.mjs`)
  process.exitCode = 1
} else if (missing.length > 0) {
  lock.packages = Object.fromEntries(Object.entries(lock.packages).sort(([a], [b]) => (a < b ? -1 : 1)))
  writeFileSync(path, `${JSON.stringify(lock, null, 2)}\n`)
  console.error(`package-lock.json: added ${missing.length} platform packages`)
}

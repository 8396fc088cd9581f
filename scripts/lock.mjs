// Holds package-lock.json against two mistakes that npm makes without a word: a package without an integrity, and an
// optional platform package left out because the registry did not have it (npm ci then refuses the lock elsewhere).
import { readFileSync } from 'node:fs'

const lock = JSON.parse(readFileSync(new URL('../package-lock.json', import.meta.url), 'utf8'))
const problems = []
for (const [path, entry] of Object.entries(lock.packages)) {
  const isFromRegistry = path.includes('node_modules/') && !entry.link
  if (isFromRegistry && !entry.integrity) problems.push(`${path} has no integrity`)
  if (entry.resolved?.includes('://')) problems.push(`${path} names a download address`)
  for (const name of Object.keys(entry.optionalDependencies ?? {})) {
    const isThere = Object.keys(lock.packages).some((key) => key.endsWith(`node_modules/${name}`))
    if (!isThere) problems.push(`${name}, which ${path} may need on another platform, is missing`)
  }
}
if (problems.length > 0) {
  console.error(problems.join('\n'))
  console.error(
    'Choose versions that the registry has for every platform, remove the lock and run npm install.',
  )
  process.exitCode = 1
}

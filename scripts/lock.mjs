// Checks package-lock.json for two errors that npm makes silently: a package without an integrity hash, and
// an optional platform package that is missing because the registry did not have it. In the second case, npm
// ci rejects the lock file on that platform.
import { readFileSync } from 'node:fs'

const lock = JSON.parse(readFileSync(new URL('../package-lock.json', import.meta.url), 'utf8'))
const problems = []
for (const [path, entry] of Object.entries(lock.packages)) {
  const isFromRegistry = path.includes('node_modules/') && !entry.link
  if (isFromRegistry && !entry.integrity) problems.push(`${path} has no integrity hash`)
  if (entry.resolved?.includes('://')) problems.push(`${path} contains a download URL`)
  for (const name of Object.keys(entry.optionalDependencies ?? {})) {
    const isPresent = Object.keys(lock.packages).some((key) => key.endsWith(`node_modules/${name}`))
    if (!isPresent) problems.push(`${name}, which ${path} may need on another platform, is missing`)
  }
}
if (problems.length > 0) {
  console.error(problems.join('\n'))
  console.error(
    'Choose versions that the registry has for every platform, delete package-lock.json and run npm install.',
  )
  process.exitCode = 1
}

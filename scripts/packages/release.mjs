// npm run release: packs and publishes the packages with the version in the root's package.json, tags the commit,
// and writes the commit's id to packages/server/released.json. With --dry-run, only packs, and lists what prevents
// a release.
import { execFileSync, spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ensureInstalled, root } from '../install.mjs'
import { exitWithMessage } from '../phase.mjs'
import { packPackages } from './pack.mjs'

const isDryRun = process.argv.includes('--dry-run')
const git = (...args) => execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim()

ensureInstalled('all')
const { version, repository } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
const tag = `v${version}`

const obstacles = [
  git('status', '--porcelain') && 'there are uncommitted changes',
  git('tag', '--list', tag) && `${tag} is already released: run npm version --no-git-tag-version <next>`,
  !changesOf(version) && `CHANGELOG.md has no section for ${version}`,
  // The published packages link to the repository in package.json, so this checkout must have it as a remote.
  !git('remote', '-v').replaceAll(':', '/').includes(address(repository.url)) &&
    `no git remote points to ${address(repository.url)}, the repository in package.json`,
].filter(Boolean)
if (obstacles.length > 0 && !isDryRun) exitWithMessage(`Not released: ${obstacles.join('; ')}.`)

const packages = await packPackages()
for (const { name, archive, size, files } of packages) {
  console.log(`${name} ${version}: ${files.length} files, ${Math.ceil(size / 1024)} kB packed, ${archive}`)
}
if (isDryRun) {
  console.log(`\n${changesOf(version) ?? ''}\n`)
  for (const obstacle of obstacles) console.log(`This prevents a release: ${obstacle}.`)
  const next = `Without --dry-run, each package would be published, then the commit would be tagged ${tag}.`
  console.log(`Nothing was published or tagged.${obstacles.length === 0 ? ` ${next}` : ''}`)
} else {
  for (const { name, archive } of packages) {
    if (isPublished(name)) console.log(`${name} ${version} was already published by an earlier attempt.`)
    else execFileSync('npm', ['publish', archive, '--access', 'public'], { cwd: root, stdio: 'inherit' })
  }
  git('tag', '--annotate', tag, '--message', `Slipway ${version}`)
  const commit = git('rev-parse', 'HEAD')
  writeFileSync(join(root, 'packages/server/released.json'), `{ "commit": "${commit}" }\n`)
  console.log(`Published. Commit packages/server/released.json, then push it and the tag ${tag}.`)
}

/** Returns whether this version of a package is published, so that an interrupted release can be repeated. */
function isPublished(name) {
  return (
    spawnSync('npm', ['view', `${name}@${version}`, 'version'], { encoding: 'utf8' }).stdout.trim() !== ''
  )
}

/** Returns the change log's section about a version, without its heading. */
function changesOf(wanted) {
  const parts = readFileSync(join(root, 'CHANGELOG.md'), 'utf8').split(/^## /m).slice(1)
  return parts
    .find((part) => part.split(/\s/, 1)[0] === wanted)
    ?.replace(/^.*\n+/, '')
    .trim()
}

function address(url) {
  return url.replace(/^git\+https:\/\//, '').replace(/\.git$/, '')
}

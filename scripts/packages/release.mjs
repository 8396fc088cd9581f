// npm run release: packs the packages and publishes them, in the version of the root's package.json, tags it, and writes the
// commit into packages/server/released.json. With --dry-run it only packs, and says what is in the way.
import { execFileSync, spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ensureInstalled, root } from '../install.mjs'
import { leave } from '../phase.mjs'
import { packPackages } from './pack.mjs'

const isDryRun = process.argv.includes('--dry-run')
const git = (...args) => execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim()

ensureInstalled('all')
const { version, repository } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
const tag = `v${version}`

const obstacles = [
  git('status', '--porcelain') && 'there are changes that are not committed',
  git('tag', '--list', tag) && `${tag} has been released already: npm version --no-git-tag-version <next>`,
  !changesOf(version) && `CHANGELOG.md says nothing about ${version}`,
  // The packages link to these sources.
  !git('remote', '-v').replaceAll(':', '/').includes(address(repository.url)) &&
    `package.json names ${address(repository.url)} as the repository, and no remote of this one is there`,
].filter(Boolean)
if (obstacles.length > 0 && !isDryRun) leave(`Not released: ${obstacles.join('; ')}.`)

const packages = await packPackages()
for (const { name, archive, size, files } of packages) {
  console.log(`${name} ${version}: ${files.length} files, ${Math.ceil(size / 1024)} kB packed, ${archive}`)
}
if (isDryRun) {
  console.log(`\n${changesOf(version) ?? ''}\n`)
  for (const obstacle of obstacles) console.log(`In the way of a release: ${obstacle}.`)
  console.log(
    `Nothing was published and nothing tagged. Without --dry-run: npm publish of each, then ${tag}.`,
  )
} else {
  for (const { name, archive } of packages) {
    if (isPublished(name)) console.log(`${name} ${version} is there from an earlier attempt.`)
    else execFileSync('npm', ['publish', archive, '--access', 'public'], { cwd: root, stdio: 'inherit' })
  }
  git('tag', '--annotate', tag, '--message', `Slipway ${version}`)
  const commit = git('rev-parse', 'HEAD')
  writeFileSync(join(root, 'packages/server/released.json'), `{ "commit": "${commit}" }\n`)
  console.log(`Published. Commit packages/server/released.json, then push it and the tag ${tag}.`)
}

/** A release that broke off between two packages can be run again. */
function isPublished(name) {
  return (
    spawnSync('npm', ['view', `${name}@${version}`, 'version'], { encoding: 'utf8' }).stdout.trim() !== ''
  )
}

/** What the change log says about a version, without its heading. */
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

// npm run build:deb: builds the Debian package of the server for the current architecture.
import { execFileSync } from 'node:child_process'
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { ensureInstalled, root } from '../install.mjs'
import { exitWithMessage, phase } from '../phase.mjs'
import { fillTree } from './tree.mjs'

const architectures = { x64: 'amd64', arm64: 'arm64' }
const units = ['slipway.service', 'slipway-backup.service', 'slipway-backup.timer', 'slipway-agent.service']
const scripts = ['postinst', 'prerm', 'postrm']

/** Builds a package for each version from the same files. Returns the paths of the packages. */
export async function buildDebs(versions = [currentVersion()]) {
  const architecture = architectures[process.arch]
  if (!architecture || process.platform !== 'linux')
    exitWithMessage(
      `A Debian package needs Linux on x64 or arm64, not ${process.platform} on ${process.arch}.`,
    )
  const tree = mkdtempSync(join(tmpdir(), 'slipway-deb-'))
  try {
    await phase('Collecting files', () => fillTree(tree))
    addSystemFiles(tree)
    mkdirSync(join(root, 'artifacts'), { recursive: true })
    return versions.map((version) => pack(tree, version, architecture))
  } finally {
    rmSync(tree, { recursive: true })
  }
}

function currentVersion() {
  return JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).version
}

function addSystemFiles(tree) {
  const folders = { units: 'lib/systemd/system', etc: 'etc/slipway', control: 'DEBIAN' }
  for (const path of Object.values(folders)) mkdirSync(join(tree, path), { recursive: true })
  for (const name of units) {
    // The comments at the top are for an installation with npm.
    const text = readFileSync(join(root, 'docs/operate', name), 'utf8').replace(/^(#.*\n)+/, '')
    writeFileSync(join(tree, folders.units, name), text)
  }
  const source = join(root, 'deploy/debian')
  cpSync(join(source, 'slipway.toml'), join(tree, folders.etc, 'slipway.toml'))
  cpSync(join(source, 'templates'), join(tree, 'DEBIAN/templates'))
  writeFileSync(join(tree, 'DEBIAN/conffiles'), '/etc/slipway/slipway.toml\n')
  for (const name of scripts) {
    cpSync(join(source, name), join(tree, 'DEBIAN', name))
    chmodSync(join(tree, 'DEBIAN', name), 0o755)
  }
  // The modes of copied files depend on the umask of the checkout, so they are set here.
  execFileSync('chmod', ['-R', 'u=rwX,go=rX', tree])
}

function pack(tree, version, architecture) {
  const sizeKib = execFileSync('du', ['-sk', tree], { encoding: 'utf8' }).split('\t')[0]
  const values = { VERSION: version, ARCHITECTURE: architecture, SIZE: sizeKib }
  const control = readFileSync(join(root, 'deploy/debian/control'), 'utf8').replace(
    /@(\w+)@/g,
    (_, name) => values[name],
  )
  writeFileSync(join(tree, 'DEBIAN/control'), control)
  const target = join(root, `artifacts/slipway-server_${version}_${architecture}.deb`)
  phase(`Packing ${version}`, () =>
    execFileSync('dpkg-deb', ['--root-owner-group', '-Zzstd', '--build', tree, target], {
      stdio: ['ignore', 'ignore', 'inherit'],
    }),
  )
  return target
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  ensureInstalled('run')
  for (const path of await buildDebs()) console.log(path)
}

// npm run build:image: builds a container image without a container engine. A small Debian system from
// mmdebstrap and the files of the server become one layer of an OCI archive, which podman load, docker load
// and skopeo can read.
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { ensureInstalled, root } from '../install.mjs'
import { exitWithMessage, phase } from '../phase.mjs'
import { baseArchive, requirePrograms } from './container.mjs'
import { fillTree } from './tree.mjs'

const architectures = { x64: 'amd64', arm64: 'arm64' }
const user = '10001:10001'

/** Returns the path of the archive. */
export async function buildImage() {
  requirePrograms('mmdebstrap', 'tar')
  const architecture = architectures[process.arch]
  if (!architecture) exitWithMessage(`An image needs x64 or arm64, not ${process.arch}.`)
  const scratch = mkdtempSync(join(tmpdir(), 'slipway-image-'))
  try {
    const layer = await phase('Collecting files', () => writeLayer(scratch))
    const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
    const target = join(root, `artifacts/slipway-${version}-${architecture}.oci.tar`)
    mkdirSync(join(root, 'artifacts'), { recursive: true })
    phase('Packing', () => pack(scratch, layer, { architecture, version, target }))
    return target
  } finally {
    rmSync(scratch, { recursive: true })
  }
}

/** Writes the root file system as one tar archive. */
async function writeLayer(scratch) {
  const tree = join(scratch, 'tree')
  mkdirSync(tree)
  const base = baseArchive('image', ['ca-certificates', 'libstdc++6'], 'essential')
  execFileSync('tar', ['-xf', base, '-C', tree, '--exclude=./dev/*', '--exclude=./usr/share/doc/*'])
  await fillTree(tree)
  // PostgreSQL runs only as a user that has a name.
  appendFileSync(join(tree, 'etc/passwd'), `slipway:x:${user}::/var/lib/slipway:/usr/sbin/nologin\n`)
  appendFileSync(join(tree, 'etc/group'), 'slipway:x:10001:\n')
  for (const path of ['var/lib/slipway', 'etc/slipway']) {
    mkdirSync(join(tree, path), { recursive: true, mode: 0o700 })
    execFileSync('chown', [user, join(tree, path)])
  }
  const layer = join(scratch, 'layer.tar')
  const reproducible = ['--sort=name', '--numeric-owner', '--mtime=@0']
  execFileSync('tar', [...reproducible, '-cf', layer, '-C', tree, '.'])
  rmSync(tree, { recursive: true })
  return layer
}

/** Writes the layout of an OCI image: blobs by digest, a manifest that names them, and an index. */
function pack(scratch, layer, { architecture, version, target }) {
  const layout = join(scratch, 'layout')
  const blobs = join(layout, 'blobs/sha256')
  mkdirSync(blobs, { recursive: true })
  const addText = (mediaType, value) => {
    const text = JSON.stringify(value)
    const digest = createHash('sha256').update(text).digest('hex')
    writeFileSync(join(blobs, digest), text)
    return { mediaType, digest: `sha256:${digest}`, size: Buffer.byteLength(text) }
  }
  const digest = execFileSync('sha256sum', [layer], { encoding: 'utf8' }).split(' ')[0]
  renameSync(layer, join(blobs, digest))
  const type = (name) => `application/vnd.oci.image.${name}`
  const config = addText(type('config.v1+json'), {
    architecture,
    os: 'linux',
    config: imageConfig(),
    rootfs: { type: 'layers', diff_ids: [`sha256:${digest}`] },
  })
  const manifest = addText(type('manifest.v1+json'), {
    schemaVersion: 2,
    mediaType: type('manifest.v1+json'),
    config,
    layers: [
      {
        mediaType: type('layer.v1.tar'),
        digest: `sha256:${digest}`,
        size: statSync(join(blobs, digest)).size,
      },
    ],
  })
  const annotations = { 'org.opencontainers.image.ref.name': `slipway:${version}` }
  const index = {
    schemaVersion: 2,
    mediaType: type('index.v1+json'),
    manifests: [{ ...manifest, annotations }],
  }
  writeFileSync(join(layout, 'index.json'), JSON.stringify(index))
  writeFileSync(join(layout, 'oci-layout'), JSON.stringify({ imageLayoutVersion: '1.0.0' }))
  execFileSync('tar', ['-cf', target, '-C', layout, 'oci-layout', 'index.json', 'blobs'])
}

/** Reads the image's settings from the Containerfile, so that both builds produce the same image. */
function imageConfig() {
  const text = readFileSync(join(root, 'deploy/Containerfile'), 'utf8')
  const last = text.slice(text.lastIndexOf('\nFROM '))
  const value = (name) => new RegExp(`^${name} (.*)$`, 'm').exec(last)[1]
  const test = /^HEALTHCHECK .*?CMD (\[.*\])$/m.exec(last)[1]
  const secondNs = 1_000_000_000
  return {
    User: value('USER'),
    Entrypoint: JSON.parse(value('ENTRYPOINT')),
    Cmd: JSON.parse(value('CMD')),
    Volumes: { [value('VOLUME')]: {} },
    ExposedPorts: { [`${value('EXPOSE')}/tcp`]: {} },
    StopSignal: value('STOPSIGNAL'),
    Env: ['PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'],
    Healthcheck: { Test: ['CMD', ...JSON.parse(test)], Interval: 10 * secondNs, Timeout: 5 * secondNs },
  }
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  ensureInstalled('run')
  console.log(await buildImage())
}

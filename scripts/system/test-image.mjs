// npm run test:image: builds the image, runs it as an unprivileged user in a chroot with a read-only root file
// system, and validates the examples for Kubernetes and Compose with programs that contain their schemas.
import assert from 'node:assert/strict'
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ensureInstalled, root } from '../install.mjs'
import { exitWithMessage } from '../phase.mjs'
import { requirePrograms, until } from './container.mjs'
import { buildImage } from './image.mjs'

const kubernetesValidate = '1.37.0'
const dclint = '3.1.0'

requirePrograms('mmdebstrap', 'unshare', 'nsenter', 'chroot', 'python3')
ensureInstalled('run')
validateKubernetes()
validateCompose()
const archive = await buildImage()
const scratch = mkdtempSync(join(tmpdir(), 'slipway-image-test-'))
try {
  const { config, tree } = unpack()
  await runImage(config, tree)
} finally {
  rmSync(scratch, { recursive: true })
}

function validateKubernetes() {
  const folder = join(root, `.cache/kubernetes-validate-${kubernetesValidate}`)
  const program = join(folder, 'bin/kubernetes-validate')
  if (!existsSync(program)) {
    execFileSync('python3', ['-m', 'venv', '--clear', folder])
    execFileSync(join(folder, 'bin/pip'), [
      'install',
      '--quiet',
      `kubernetes-validate==${kubernetesValidate}`,
    ])
  }
  const directory = join(root, 'deploy/kubernetes')
  const files = readdirSync(directory).filter((name) => name.endsWith('.yaml'))
  assert.ok(files.length >= 4)
  check(program, ['--strict', ...files.map((name) => join(directory, name))])
  console.log(`ok  ${files.length} Kubernetes manifests are valid`)
}

function validateCompose() {
  const folder = join(root, `.cache/dclint-${dclint}`)
  if (!existsSync(folder)) {
    mkdirSync(folder, { recursive: true })
    const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error']
    execFileSync('npm', ['install', '--prefix', folder, ...flags, `dclint@${dclint}`])
  }
  check(join(folder, 'node_modules/.bin/dclint'), [
    join(root, 'deploy/compose.yaml'),
    '--max-warnings',
    '1000',
  ])
  console.log('ok  the Compose file is valid')
}

function check(program, args) {
  const { status, stdout, stderr } = spawnSync(program, args, { encoding: 'utf8' })
  if (status !== 0) exitWithMessage(`${program} failed:\n${stdout}${stderr}`)
}

/** Unpacks the image and checks its digests, from the index to the layers, as a container engine does. */
function unpack() {
  const layout = join(scratch, 'layout')
  mkdirSync(layout)
  execFileSync('tar', ['-xf', archive, '-C', layout])
  const blob = ({ digest }) => join(layout, 'blobs', digest.replace(':', '/'))
  const read = (descriptor) => {
    const text = readFileSync(blob(descriptor))
    assert.equal(`sha256:${createHash('sha256').update(text).digest('hex')}`, descriptor.digest)
    return JSON.parse(text)
  }
  const index = JSON.parse(readFileSync(join(layout, 'index.json'), 'utf8'))
  const manifest = read(index.manifests[0])
  const { config, rootfs } = read(manifest.config)
  const tree = join(scratch, 'tree')
  mkdirSync(tree)
  for (const [i, layer] of manifest.layers.entries()) {
    const digest = execFileSync('sha256sum', [blob(layer)], { encoding: 'utf8' }).split(' ')[0]
    assert.equal(`sha256:${digest}`, layer.digest)
    assert.equal(layer.digest, rootfs.diff_ids[i])
    execFileSync('tar', ['-xf', blob(layer), '-C', tree])
  }
  const size = Number(execFileSync('du', ['-sm', tree], { encoding: 'utf8' }).split('\t')[0])
  console.log(`ok  the image is unpacked: ${size} MB`)
  return { config, tree }
}

/**
 * Runs the entry point with its own network, processes and mounts: everything is read-only except the volume
 * and /tmp.
 */
async function runImage(config, tree) {
  const [volume] = Object.keys(config.Volumes)
  const inChroot = ['chroot', `--userspec=${config.User}`, tree, 'env', '-i', ...config.Env]
  const mounts = `
    set -e
    ip link set lo up
    mount --bind "${tree}" "${tree}"
    mount -o remount,bind,ro "${tree}"
    mount -t tmpfs -o mode=1777 tmpfs "${tree}/tmp"
    mount -t tmpfs -o mode=0700,uid=10001,gid=10001 tmpfs "${tree}${volume}"
    mount -t proc proc "${tree}/proc"
    mount -t tmpfs tmpfs "${tree}/dev"
    for name in null zero urandom random; do touch "${tree}/dev/$name"; mount --bind "/dev/$name" "${tree}/dev/$name"; done
    mkdir -m 1777 "${tree}/dev/shm"
    exec "$@"`
  const args = ['--mount', '--net', '--pid', '--fork', '--kill-child', 'sh', '-c', mounts, 'sh']
  const server = spawn('unshare', [...args, ...inChroot, ...config.Entrypoint, ...config.Cmd])
  let output = ''
  for (const stream of [server.stdout, server.stderr])
    stream.setEncoding('utf8').on('data', (text) => {
      output += text
    })
  const ended = new Promise((resolve) => server.once('close', resolve))
  try {
    await until('the server is ready', () => {
      if (server.exitCode !== null) throw new Error(`the server ended: ${output}`)
      return output.includes('"msg":"ready"')
    })
    const child = readFileSync(`/proc/${server.pid}/task/${server.pid}/children`, 'utf8').trim()
    const inside = (...command) =>
      spawnSync('nsenter', ['-t', child, '--mount', '--net', '--pid', ...inChroot, ...command], {
        encoding: 'utf8',
      })
    assert.equal(inside(...config.Healthcheck.Test.slice(1)).status, 0, 'the health check fails')
    assert.notEqual(inside('touch', '/usr/lib/slipway/changed').status, 0, 'the root file system is writable')
    const status = readFileSync(`/proc/${child}/status`, 'utf8')
    assert.match(status, /^Uid:\s+10001\s+10001/m)
    assert.match(output, /Setup code/)
    console.log('ok  the image runs without root on a read-only root file system, and is healthy')
    process.kill(Number(child), config.StopSignal)
    assert.equal(await ended, 0, output)
    console.log('ok  the image stops with its stop signal')
  } finally {
    if (server.exitCode === null) server.kill('SIGKILL')
    await ended
  }
}

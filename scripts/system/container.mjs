// A small Debian system in a systemd-nspawn container, for tests of installed packages. The container has
// only a loopback network.
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { root } from '../install.mjs'
import { exitWithMessage, phase } from '../phase.mjs'

const release = 'bookworm'
const packages = ['systemd', 'systemd-sysv', 'dbus', 'curl', 'ca-certificates']

export function requirePrograms(...names) {
  if (process.getuid() !== 0) exitWithMessage('Skipped: this test needs root.')
  const missing = names.filter((name) => spawnSync('which', [name]).status !== 0)
  if (missing.length > 0) exitWithMessage(`Skipped: this test needs the programs ${missing.join(' and ')}.`)
}

/** Returns an archive of the file system, which is downloaded once. */
export function baseArchive(name = release, included = packages, variant = 'apt') {
  const path = join(root, `.cache/${name}.tar`)
  if (existsSync(path)) return path
  mkdirSync(join(root, '.cache'), { recursive: true })
  const args = ['--quiet', `--variant=${variant}`, `--include=${included.join(',')}`, release, `${path}.new`]
  phase('Downloading Debian', () =>
    execFileSync('mmdebstrap', ['--format=tar', ...args], { stdio: 'inherit' }),
  )
  renameSync(`${path}.new`, path)
  return path
}

export class Container {
  #nspawn
  #leader

  /** The root directory of the container, as a path on this machine. */
  directory = mkdtempSync(join(tmpdir(), 'slipway-container-'))

  static async boot(archive = baseArchive()) {
    const container = new Container()
    execFileSync('tar', ['-xf', archive, '-C', container.directory])
    await phase('Starting systemd', () => container.#start())
    return container
  }

  async #start() {
    // Without the last flag, the time zone file is a mount, which a package cannot replace.
    const flags = ['--register=no', '--keep-unit', '--private-network', '--boot', '--quiet', '--timezone=off']
    this.#nspawn = spawn('systemd-nspawn', [...flags, '-D', this.directory], { stdio: 'ignore' })
    await until('systemd runs', () => {
      const { pid } = this.#nspawn
      this.#leader = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ')[0]
      return this.#leader && /running|degraded/.test(this.try('systemctl is-system-running').stdout)
    })
  }

  /** The network namespace of the container. */
  get network() {
    return `/proc/${this.#leader}/ns/net`
  }

  /** Runs a shell command in the container. Returns its exit code and output. */
  try(command, env = {}) {
    return this.#execute(['sh', '-c', `cd /root && ${command}`], env, ['-a'])
  }

  /** Runs a bash script in the container, but with the network of this machine, for downloads. */
  tryOnline(script, env = {}) {
    return this.#execute(['bash', '-c', script], env, ['--mount', '--uts', '--ipc', '--pid', '--cgroup'])
  }

  #execute(command, env, namespaces) {
    const variables = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C.UTF-8', HOME: '/root', ...env }
    const given = Object.entries(variables).map(([name, value]) => `${name}=${value}`)
    const args = ['-t', this.#leader, ...namespaces, 'env', '-i', ...given, ...command]
    return spawnSync('nsenter', args, { encoding: 'utf8' })
  }

  /** Returns the output of a command that must succeed. */
  run(command, env) {
    const { status, stdout, stderr } = this.try(command, env)
    if (status === 0) return stdout
    throw new Error(`${command}: exit code ${status}\n${stdout}${stderr}`)
  }

  async close() {
    if (this.#nspawn && this.#nspawn.exitCode === null) {
      const ended = new Promise((resolve) => this.#nspawn.once('close', resolve))
      this.#nspawn.kill('SIGTERM')
      const timer = setTimeout(() => this.#nspawn.kill('SIGKILL'), 60_000)
      await ended
      clearTimeout(timer)
    }
    rmSync(this.directory, { recursive: true, force: true })
  }
}

/** Waits until the probe returns a truthy value, and returns this value. */
export async function until(what, probe, withinMs = 120_000) {
  const end = performance.now() + withinMs
  for (;;) {
    const found = await probe()
    if (found) return found
    if (performance.now() > end) throw new Error(`timed out after ${withinMs / 1000} s: ${what}`)
    await delay(200)
  }
}

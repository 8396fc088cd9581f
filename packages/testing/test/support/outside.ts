import { spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Launcher } from '../../src/launcher.ts'
import type { Ended, Program, ProgramOptions } from '../../src/program.ts'

/** The variables of the developer's environment that npm gets, because it may need them to reach the registry. */
const registryVariables = [
  'HTTPS_PROXY',
  'HTTP_PROXY',
  'NO_PROXY',
  'NODE_EXTRA_CA_CERTS',
  'npm_config_registry',
]

/**
 * A folder outside of the checkout with an empty home. Only npm has access to the network. All other programs have a
 * private loopback network, if it can be created (as root, on Linux).
 */
export class Outside {
  readonly #launcher = new Launcher()
  readonly dir = this.#launcher.dir
  readonly home = join(this.dir, 'home')
  /** The standard error of npm during the installation. */
  installWarnings = ''
  #loopback: string[] = []

  async open(): Promise<void> {
    mkdirSync(this.home)
    const mayUnshare = process.getuid?.() === 0 && spawnSync('unshare', ['--net', 'ip', 'link']).status === 0
    if (!mayUnshare) return
    const script = 'ip link set lo up && echo ready && exec sleep infinity'
    const namespaceHolder = this.#launcher.run('unshare', ['--net', 'sh', '-c', script])
    await namespaceHolder.line('ready')
    this.#loopback = ['nsenter', `--net=/proc/${namespaceHolder.pid}/ns/net`, '--']
  }

  /** Creates a project with these packages, given as archives or as names with versions. Returns its folder. */
  async install(name: string, packages: string[]): Promise<string> {
    const cwd = join(this.dir, name)
    mkdirSync(cwd)
    writeFileSync(join(cwd, 'package.json'), JSON.stringify({ name, private: true, type: 'module' }))
    const forRegistry = Object.fromEntries(registryVariables.map((key) => [key, process.env[key]]))
    const args = ['install', '--no-audit', '--no-fund', '--ignore-scripts', ...packages]
    const npm = this.#launcher.run('npm', args, { cwd, env: { ...forRegistry, HOME: this.home } })
    const { code, output, errors } = await npm.ended()
    if (code !== 0) throw new Error(`npm install failed: ${output}${errors}`)
    this.installWarnings += errors
    return cwd
  }

  start(command: string, args: string[], options: ProgramOptions): Program {
    const [first, ...rest] = [...this.#loopback, command, ...args]
    const env = { HOME: this.home, TZ: 'UTC', LANG: 'C.UTF-8', ...options.env }
    return this.#launcher.run(first!, rest, { ...options, env })
  }

  run(command: string, args: string[], options: ProgramOptions): Promise<Ended> {
    return this.start(command, args, options).ended()
  }

  /** Stops what still runs, including the PostgreSQL of `dataDir`, and removes everything. */
  async close(dataDir: string): Promise<void> {
    this.#launcher.use(dataDir)
    await this.#launcher.clear()
  }
}

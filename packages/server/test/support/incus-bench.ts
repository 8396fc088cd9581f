import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process'
import { existsSync, openSync } from 'node:fs'
import { chmod, mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { eventually } from '@slipway/testing/eventually.ts'
import { serverProgram } from '@slipway/testing/launcher.ts'
import type { IncusConfig } from '../../src/config/index.ts'
import { createIncusEngine, type IncusOptions } from '../../src/engines/incus/index.ts'
import { testImage } from './images/container-image.ts'
import { incusConfig } from './incus/config.ts'

const exec = promisify(execFile)
const daemon = '/usr/libexec/incus/incusd'

/**
 * The reason why no daemon can be started here, shown in the names of skipped tests; '' if one can be
 * started.
 */
export const whyNoIncus = findObstacle()

function findObstacle(): string {
  if (process.getuid?.() !== 0) return '(needs root)'
  if (!existsSync(daemon))
    return '(needs Incus: apt-get install -t bookworm-backports incus-base incus-client)'
  const { status } = spawnSync('unshare', ['--net', '--mount', 'true'])
  return status === 0 ? '' : '(needs to create network and mount namespaces)'
}

/** Mounts /sys of the network namespace, with the cgroups, which the daemon expects there. */
const ownSys = `
set -e
mkdir -p "$1/cgroup"; mount --rbind /sys/fs/cgroup "$1/cgroup"
mount -t sysfs sysfs /sys; mount --rbind "$1/cgroup" /sys/fs/cgroup
`

export class IncusMember {
  readonly name: string
  readonly namespace: string
  readonly address: string
  readonly dir: string
  /**
   * Shell commands that run before the daemon starts, with the member's folder, name and address as
   * arguments. If they set `launcher`, that command starts the daemon.
   */
  readonly prelude: string
  #child: ChildProcess | undefined
  #agent: ChildProcess | undefined

  constructor(name: string, namespace: string, address: string, dir: string, prelude: string) {
    this.prelude = prelude
    this.name = name
    this.namespace = namespace
    this.address = address
    this.dir = dir
  }

  get socket(): string {
    return join(this.dir, 'unix.socket')
  }

  async start(): Promise<void> {
    await mkdir(this.dir, { recursive: true })
    const log = openSync(`${this.dir}.log`, 'a')
    this.#child = spawn(
      'nsenter',
      [
        ...[`--net=/run/netns/${this.namespace}`, 'unshare', '--mount', '--uts', '--propagation', 'private'],
        ...[
          'sh',
          '-c',
          `hostname ${this.name}; ${ownSys}${this.prelude}\nexec $launcher ${daemon} --group root`,
        ],
        ...['sh', this.dir, this.name, this.address],
      ],
      { env: { ...process.env, INCUS_DIR: this.dir }, stdio: ['ignore', log, log] },
    )
    await this.waitUntilReady()
  }

  /** Waits until the daemon reports that it is ready. */
  async waitUntilReady(): Promise<void> {
    const env = { ...process.env, INCUS_DIR: this.dir }
    await exec(daemon, ['waitready', '--timeout', '150'], { env }).catch(async (cause) => {
      const log = await readFile(`${this.dir}.log`, 'utf8').catch(() => '')
      throw new Error(`Incus does not start: ${log}`, { cause })
    })
  }

  async kill(): Promise<void> {
    await end(this.#child)
  }

  /** Freezes the daemon, which then keeps its connections open but does not respond. */
  freeze = () => this.#child?.kill('SIGSTOP')
  thaw = () => this.#child?.kill('SIGCONT')

  /** Starts the agent and waits for its first report. */
  async startAgent(): Promise<void> {
    const log = openSync(`${this.dir}.agent.log`, 'a')
    const flags = ['--socket', this.socket, '--state-dir', `${this.dir}.agent`]
    const command = [process.execPath, serverProgram, 'incus', 'agent', ...flags]
    this.#agent = spawn('nsenter', [`--net=/run/netns/${this.namespace}`, ...command], {
      stdio: ['ignore', log, log],
    })
    await eventually(
      async () => /"user\.slipway\.agent"|user\.slipway\.agent:/.test(await this.#ownConfig()),
      60_000,
    )
  }

  async killAgent(): Promise<void> {
    await end(this.#agent)
  }

  async #ownConfig(): Promise<string> {
    const clustered = await this.cli('query', `/1.0/cluster/members/${this.name}`).catch(() => '')
    return clustered || (await this.cli('query', '/1.0').catch(() => ''))
  }

  async cli(...args: string[]): Promise<string> {
    const running = exec('incus', args, { env: { ...process.env, INCUS_DIR: this.dir }, timeout: 60_000 })
    // The command waits for the end of its standard input.
    running.child.stdin?.end()
    return (await running).stdout
  }

  /** Returns the id that a guest's first process has on this machine. */
  async pidOf(instance: string): Promise<number> {
    const state = JSON.parse(await this.cli('query', `/1.0/instances/${instance}/state?project=slipway`))
    return (state as { pid: number }).pid
  }

  async instances(): Promise<string[]> {
    return JSON.parse(await this.cli('query', '/1.0/instances?project=slipway')) as string[]
  }

  /** Returns the kernel's packet filter, as nft prints it. */
  async packetFilter(): Promise<string> {
    const args = [`--net=/run/netns/${this.namespace}`, 'nft', 'list', 'ruleset', 'inet']
    return (await exec('nsenter', args)).stdout
  }

  preseed(yaml: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const args = [`--net=/run/netns/${this.namespace}`, 'incus', 'admin', 'init', '--preseed']
      const child = execFile(
        'nsenter',
        args,
        { env: { ...process.env, INCUS_DIR: this.dir } },
        (error, _, stderr) => (error ? reject(new Error(stderr || error.message)) : resolve()),
      )
      child.stdin!.end(yaml)
    })
  }
}

/** Daemons, bridges and guests in their own network namespaces, and a client in another one. */
export class IncusBench {
  readonly dir: string
  readonly members: IncusMember[]
  readonly client: string
  readonly #lan: string

  private constructor(dir: string, prefix: string, memberCount: number, prelude: string) {
    this.dir = dir
    this.#lan = `${prefix}-lan`
    this.client = `${prefix}-client`
    this.members = Array.from({ length: memberCount }, (_, index) => {
      const name = `m${index + 1}`
      return new IncusMember(name, `${prefix}-${name}`, `198.51.100.${index + 1}`, join(dir, name), prelude)
    })
  }

  static async open(memberCount: number, prelude = ''): Promise<IncusBench> {
    if (whyNoIncus) throw new Error(`Incus cannot be started ${whyNoIncus}`)
    const dir = await mkdtemp(join(tmpdir(), 'swi-'))
    // The users of the containers need to pass through this directory.
    await chmod(dir, 0o711)
    const bench = new IncusBench(dir, `swi${process.pid}`, memberCount, prelude)
    try {
      await bench.#makeNetwork()
      await Promise.all(bench.members.map((member) => member.start()))
      return bench
    } catch (error) {
      await bench.close()
      throw error
    }
  }

  /** Starts a single server with storage pools and the image of the test guest. */
  static async alone(prelude = ''): Promise<IncusBench> {
    const bench = await IncusBench.open(1, prelude)
    try {
      const pools = ['default', 'disks'].map((name) => `{name: ${name}, driver: dir}`)
      await bench.members[0]!.preseed(`storage_pools: [${pools}]\n`)
      await bench.provide(bench.members[0]!)
      return bench
    } catch (error) {
      await bench.close()
      throw error
    }
  }

  /** Starts the members of one cluster, connected by a switch. */
  static async cluster(memberCount: number, prelude = ''): Promise<IncusBench> {
    const bench = await IncusBench.open(memberCount, prelude)
    try {
      const [first, ...others] = bench.members
      await first!.preseed(`config: {core.https_address: "${first!.address}:8443"}
storage_pools: [{name: default, driver: dir}]
cluster: {server_name: ${first!.name}, enabled: true}
`)
      await first!.cli('config', 'set', 'cluster.offline_threshold', '20')
      for (const member of others) {
        const output = await first!.cli('cluster', 'add', member.name)
        await member.preseed(`cluster:
  server_name: ${member.name}
  enabled: true
  server_address: ${member.address}:8443
  cluster_token: ${output.trim().split('\n').at(-1)}
  member_config: [{entity: storage-pool, name: default, key: source, value: ""}]
`)
      }
      await bench.provide(first!)
      return bench
    } catch (error) {
      await bench.close()
      throw error
    }
  }

  async startAgents(): Promise<void> {
    await Promise.all(this.members.map((member) => member.startAgent()))
  }

  async provide(member: IncusMember): Promise<void> {
    const features = ['features.networks=false', 'features.images=true', 'features.storage.volumes=true']
    await member.cli('project', 'create', 'slipway', ...features.flatMap((feature) => ['-c', feature]))
    await member.cli('--project', 'slipway', 'image', 'import', await testImage(), '--alias', 'guest:latest')
  }

  config(changes: Record<string, unknown> = {}): IncusConfig {
    return incusConfig({ socket: this.members[0]!.socket, ...changes })
  }

  engine(config = this.config(), options: Partial<IncusOptions> = {}) {
    return createIncusEngine({
      config,
      answersSsh: (address, port) => this.answersSsh(address, port),
      ...options,
    })
  }

  /** Runs a command where a tenant's client would run. */
  async fromClient(...command: string[]): Promise<string> {
    const args = [`--net=/run/netns/${this.client}`, ...command]
    return (await exec('nsenter', args, { timeout: 60_000 })).stdout
  }

  async answersSsh(address: string, port: number): Promise<boolean> {
    return (await this.greeting(address, port, 3)).startsWith('SSH-')
  }

  /** Returns the first bytes that a TCP server sends; '' if none responds in time. */
  greeting(address: string, port: number, withinS = 1): Promise<string> {
    const script = `exec 3<>/dev/tcp/${address}/${port} && head -c 4 <&3`
    return this.fromClient('timeout', `${withinS}`, 'bash', '-c', script).catch(() => '')
  }

  async close(): Promise<void> {
    for (const member of this.members) {
      await member.killAgent()
      await member.kill()
    }
    // Guests outlive their daemon, so kill every process that uses the bench's folder or namespaces.
    for (let round = 0; round < 3; round++) for (const pid of await this.#processes()) kill(pid)
    for (const namespace of [...this.members.map((member) => member.namespace), this.client, this.#lan])
      await exec('ip', ['netns', 'delete', namespace]).catch(() => {})
    await rm(this.dir, { recursive: true, force: true, maxRetries: 5 })
  }

  async #processes(): Promise<number[]> {
    const found: number[] = []
    for (const member of this.members) {
      const { stdout } = await exec('ip', ['netns', 'pids', member.namespace]).catch(() => ({ stdout: '' }))
      found.push(...stdout.split('\n').filter(Boolean).map(Number))
    }
    const monitors = new Set<string>()
    const parents = new Map<string, string>()
    for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
      const commandLine = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')
      if (commandLine.includes(`${this.dir}/`) && Number(pid) !== process.pid) monitors.add(pid)
      const parent = /^PPid:\t(\d+)$/m.exec(await readFile(`/proc/${pid}/status`, 'utf8').catch(() => ''))
      if (parent) parents.set(pid, parent[1]!)
    }
    for (const [pid, parent] of parents) if (monitors.has(parent)) found.push(Number(pid))
    return [...found, ...[...monitors].map(Number)]
  }

  /** Connects members and client to a switch. Packets to public addresses go to the first member. */
  async #makeNetwork(): Promise<void> {
    const ip = (...args: string[]) => exec('ip', args)
    await ip('netns', 'add', this.#lan)
    await ip('-n', this.#lan, 'link', 'add', 'lan', 'type', 'bridge')
    await ip('-n', this.#lan, 'link', 'set', 'lan', 'up')
    const ends = [
      ...this.members.map(({ namespace, address }) => ({ namespace, address })),
      { namespace: this.client, address: '198.51.100.100' },
    ]
    for (const [index, { namespace, address }] of ends.entries()) {
      await ip('netns', 'add', namespace)
      await ip('-n', namespace, 'link', 'set', 'lo', 'up')
      await ip(
        '-n',
        namespace,
        'link',
        'add',
        'up0',
        'type',
        'veth',
        'peer',
        'name',
        `p${index}`,
        'netns',
        this.#lan,
      )
      await ip('-n', this.#lan, 'link', 'set', `p${index}`, 'master', 'lan', 'up')
      await ip('-n', namespace, 'address', 'add', `${address}/24`, 'dev', 'up0')
      await ip('-n', namespace, 'link', 'set', 'up0', 'up')
      await ip('-n', namespace, 'route', 'add', 'default', 'via', '198.51.100.100').catch(() => {})
      const settings = ['net.ipv4.ip_forward=1', 'net.bridge.bridge-nf-call-iptables=1']
      await exec('nsenter', [`--net=/run/netns/${namespace}`, 'sysctl', '-qw', ...settings])
    }
    await this.routePublic('203.0.113.0/24', this.members[0]!)
  }

  /** Returns the leader of the database, according to `member`. */
  async leader(member = this.members[0]!): Promise<IncusMember> {
    const members = JSON.parse(await member.cli('query', '/1.0/cluster/members?recursion=1')) as {
      server_name: string
      roles: string[]
    }[]
    const leader = members.find(({ roles }) => roles.includes('database-leader'))
    return this.members.find(({ name }) => name === leader?.server_name)!
  }

  /** Disconnects the member from the others; its own socket still works. */
  cutOff = (member: IncusMember) => this.#plug(member, 'down')
  reconnect = (member: IncusMember) => this.#plug(member, 'up')

  async #plug(member: IncusMember, state: 'up' | 'down'): Promise<void> {
    await exec('ip', ['-n', this.#lan, 'link', 'set', `p${this.members.indexOf(member)}`, state])
  }

  /** Adds a second port for the member on the switch, without an address. */
  async addPort(member: IncusMember, name: string): Promise<void> {
    const end = `${name}-${member.name}`
    const peer = ['type', 'veth', 'peer', 'name', end, 'netns', this.#lan]
    await exec('ip', ['-n', member.namespace, 'link', 'add', name, ...peer])
    await exec('ip', ['-n', this.#lan, 'link', 'set', end, 'master', 'lan', 'up'])
    await exec('ip', ['-n', member.namespace, 'link', 'set', name, 'up'])
  }

  /** Returns whether the OS disk of a VM has this file. Any member can have the VM. */
  hasFile(vmId: string, path: string): boolean {
    const disk = `storage-pools/default/containers/slipway_vm-${vmId}/rootfs`
    return this.members.some(({ dir }) => existsSync(join(dir, disk, path)))
  }

  async routePublic(block: string, member: IncusMember): Promise<void> {
    await exec('ip', ['-n', this.client, 'route', 'replace', block, 'via', member.address])
  }
}

async function end(child: ChildProcess | undefined): Promise<void> {
  if (!child || child.exitCode !== null || child.signalCode !== null) return
  const ended = new Promise((resolve) => child.once('exit', resolve))
  child.kill('SIGKILL')
  await ended
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {}
}

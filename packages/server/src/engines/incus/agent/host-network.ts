import { type ChildProcess, spawn } from 'node:child_process'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { run } from '../../qemu/command.ts'
import type { GuestNetwork } from './guest-network.ts'
import { packetFilter } from './packet-filter.ts'

const vxlanPort = 4789
const vxlanGroup = '239.27.0.1'
/** The number of bytes that remain in a 1500-byte packet after the VXLAN headers. */
const tunnelMtu = 1450
const endPollMs = 10
/** Routes of public addresses are in a separate table, from which a BGP speaker can announce them. */
export const publicRouteTable = 2700

const tunnelOf = (bridge: string) => `sv${bridge.slice(2)}`

/**
 * The bridges, tunnels, packet filter, routes and DHCP for the guests of this machine. `apply` makes the
 * kernel match a list of guests, regardless of its previous state.
 */
export class HostNetwork {
  readonly #dir: string
  #filter = ''
  #routes = ''
  #dhcpConfig = ''
  #dhcpHosts = ''
  #dnsmasq: ChildProcess | undefined

  constructor(dir: string) {
    this.#dir = dir
  }

  /** `memberAddress` is the address at which other members reach this one; '' without a cluster. */
  async apply(guests: GuestNetwork[], memberAddress: string): Promise<void> {
    const subnets = [...new Map(guests.map((guest) => [guest.bridge, guest])).values()]
    // The filter comes first, so that a new bridge never carries unfiltered packets.
    await this.#applyFilter(guests)
    const existing = await readBridges()
    for (const subnet of subnets) await ensureBridge(subnet, existing, uplinkOf(memberAddress))
    for (const name of existing.keys())
      if (!subnets.some(({ bridge }) => bridge === name)) await removeBridge(name)
    await this.#applyRoutes(guests)
    await this.#applyDhcp(guests, subnets)
  }

  /** Creates the state directory and enables IP forwarding. */
  async prepare(): Promise<void> {
    await mkdir(this.#dir, { recursive: true, mode: 0o755 })
    await writeFile('/proc/sys/net/ipv4/ip_forward', '1')
  }

  stop(): void {
    this.#dnsmasq?.kill()
  }

  async #applyFilter(guests: GuestNetwork[]): Promise<void> {
    const filter = packetFilter(guests)
    if (filter === this.#filter) return
    await run('nft', ['-f', '-'], { input: filter })
    this.#filter = filter
  }

  async #applyRoutes(guests: GuestNetwork[]): Promise<void> {
    const routes = guests
      .filter(({ publicAddress }) => publicAddress !== '')
      .map(({ publicAddress, bridge }) => `${publicAddress}/32 dev ${bridge}`)
      .sort()
    if (routes.join('\n') === this.#routes) return
    const wanted = new Set(routes.map((route) => route.split('/')[0]!))
    const shown = await run('ip', ['-4', 'route', 'show', 'table', String(publicRouteTable)]).catch(() => '')
    const old = shown.split('\n').flatMap((line) => line.split(/[ /]/)[0] || [])
    const lines = [
      ...old
        .filter((address) => !wanted.has(address))
        .map((address) => `route del ${address}/32 table ${publicRouteTable}`),
      ...routes.map((route) => `route replace ${route} table ${publicRouteTable}`),
    ]
    await run('ip', ['-4', '-batch', '-'], { input: `${lines.join('\n')}\n` })
    this.#routes = routes.join('\n')
  }

  /**
   * One dnsmasq process serves all bridges. Its configuration contains only the guests of this machine, with
   * their addresses.
   */
  async #applyDhcp(guests: GuestNetwork[], subnets: GuestNetwork[]): Promise<void> {
    const hosts = guests
      .map(({ macAddress, privateAddress }) => `${macAddress},${privateAddress},infinite\n`)
      .join('')
    const config = dhcpConfig(subnets, join(this.#dir, 'dhcp-hosts'))
    if (hosts !== this.#dhcpHosts) await writeFile(join(this.#dir, 'dhcp-hosts'), hosts, { mode: 0o644 })
    const isRunning = this.#dnsmasq?.exitCode === null && this.#dnsmasq.signalCode === null
    if (subnets.length > 0 && (config !== this.#dhcpConfig || !isRunning)) await this.#startDnsmasq(config)
    else if (hosts !== this.#dhcpHosts) this.#dnsmasq?.kill('SIGHUP')
    this.#dhcpHosts = hosts
    this.#dhcpConfig = config
  }

  async #startDnsmasq(config: string): Promise<void> {
    const file = join(this.#dir, 'dnsmasq.conf')
    await writeFile(file, config, { mode: 0o644 })
    await endProcess(await this.#runningDnsmasq())
    const args = ['--keep-in-foreground', `--conf-file=${file}`]
    const env = { ...process.env, PATH: `${process.env.PATH}:/usr/sbin:/sbin` }
    this.#dnsmasq = spawn('dnsmasq', args, { stdio: ['ignore', 'inherit', 'inherit'], env })
    this.#dnsmasq.on('error', (error) => console.error(`dnsmasq: ${error.message}`))
    if (this.#dnsmasq.pid) await writeFile(join(this.#dir, 'dnsmasq.pid'), String(this.#dnsmasq.pid))
  }

  /** Returns the pid of the dnsmasq process of this agent, or of an earlier agent that was killed. */
  async #runningDnsmasq(): Promise<number | undefined> {
    const pid = Number(await readFile(join(this.#dir, 'dnsmasq.pid'), 'utf8').catch(() => '0'))
    const commandLine = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')
    return commandLine.includes(join(this.#dir, 'dnsmasq.conf')) ? pid : undefined
  }
}

async function endProcess(pid: number | undefined): Promise<void> {
  if (pid === undefined) return
  process.kill(pid, 'SIGKILL')
  while (await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')) await sleep(endPollMs)
}

function dhcpConfig(subnets: GuestNetwork[], hostsFile: string): string {
  const ranges = subnets.map(({ subnetCidr }) => {
    const [base, prefix] = subnetCidr.split('/') as [string, string]
    return `dhcp-range=${base},static,${maskOf(Number(prefix))},infinite`
  })
  return [
    ...[
      'interface=sl*',
      'except-interface=lo',
      'bind-dynamic',
      'pid-file=',
      'leasefile-ro',
      'no-hosts',
      'no-ping',
    ],
    ...['dhcp-ignore=tag:!known', `dhcp-hostsfile=${hostsFile}`, ...ranges, ''],
  ].join('\n')
}

const maskOf = (prefix: number) =>
  [24, 16, 8, 0].map((shift) => ((0xffffffff << (32 - prefix)) >>> shift) & 255).join('.')

interface Link {
  ifname: string
  address: string
}

/**
 * Returns the agent's bridges that exist in the kernel. The value of each is its gateway address, followed by
 * ` tunnel` if the bridge has a tunnel.
 */
async function readBridges(): Promise<Map<string, string>> {
  const links = JSON.parse((await run('ip', ['-j', 'link', 'show', 'type', 'bridge'])) || '[]') as Link[]
  const own = links.filter(({ ifname }) => /^sl[0-9a-f]{11}$/.test(ifname ?? ''))
  const shown = networkInterfaces()
  const tunnels = JSON.parse((await run('ip', ['-j', 'link', 'show', 'type', 'vxlan'])) || '[]') as Link[]
  return new Map(
    own.map(({ ifname }) => {
      const address = shown[ifname]?.find(({ family }) => family === 'IPv4')?.cidr ?? ''
      const hasTunnel = tunnels.some((tunnel) => tunnel.ifname === tunnelOf(ifname))
      return [ifname, `${address}${hasTunnel ? ' tunnel' : ''}`]
    }),
  )
}

async function ensureBridge(
  { bridge, vni, gateway, subnetCidr }: GuestNetwork,
  existing: Map<string, string>,
  uplink: string,
): Promise<void> {
  const cidr = `${gateway}/${subnetCidr.split('/')[1]}`
  if (existing.get(bridge) === `${cidr}${uplink ? ' tunnel' : ''}`) return
  const tunnel = tunnelOf(bridge)
  if (!existing.has(bridge)) await run('ip', ['link', 'add', bridge, 'type', 'bridge'])
  await run('ip', ['address', 'replace', cidr, 'dev', bridge])
  if (uplink && !existing.get(bridge)?.endsWith('tunnel')) {
    const vxlan = ['id', String(vni), 'group', vxlanGroup, 'dev', uplink, 'dstport', String(vxlanPort)]
    await run('ip', ['link', 'add', tunnel, 'mtu', String(tunnelMtu), 'type', 'vxlan', ...vxlan])
    await run('ip', ['link', 'set', tunnel, 'master', bridge, 'up'])
  }
  await run('ip', ['link', 'set', bridge, ...(uplink ? ['mtu', String(tunnelMtu)] : []), 'up'])
}

/**
 * Removes a bridge that no guest uses any more. If an instance is still connected to the bridge, no rule
 * allows the instance's traffic.
 */
async function removeBridge(bridge: string): Promise<void> {
  await run('ip', ['link', 'delete', tunnelOf(bridge)]).catch(() => {})
  await run('ip', ['link', 'delete', bridge]).catch(() => {})
}

/** Returns the interface with this address; '' if there is none. */
function uplinkOf(address: string): string {
  if (address === '') return ''
  const found = Object.entries(networkInterfaces()).find(([, addresses = []]) =>
    addresses.some((one) => one.address === address),
  )
  return found?.[0] ?? ''
}

export async function filtersInternal(): Promise<boolean> {
  const setting = '/proc/sys/net/bridge/bridge-nf-call-iptables'
  return (await readFile(setting, 'utf8').catch(() => '')).trim() === '1'
}

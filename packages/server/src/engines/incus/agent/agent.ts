import { readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { run } from '../../qemu/command.ts'
import { scanGpus } from '../../sysfs-gpus.ts'
import type { IncusContext } from '../context.ts'
import { IncusEvents } from '../events.ts'
import { changeMember, findMember, serverInfo } from '../fleet/members.ts'
import { type Instance, marks } from '../instances.ts'
import { canLimitNetwork } from '../traffic-control.ts'
import { checksOf } from './gpu-checks.ts'
import {
  type AgentReport,
  agentKey,
  type GuestNetwork,
  guestNetworkKey,
  guestNetworkOf,
  versionOf,
} from './guest-network.ts'
import { filtersInternal, HostNetwork } from './host-network.ts'

/** All guests of this member are read at this interval, because events can be lost. */
const fullReadMs = 30_000
const retryMs = 1_000
const readMs = 10_000
/** The pause after an event, so that the other events of the same change arrive too. */
const gatherMs = 10
/**
 * With this header, which members send to each other, Incus lists only the instances of the member that
 * receives the request.
 */
const localOnly = { 'user-agent': 'incus-cluster-notifier' }

export interface AgentOptions {
  stateDir: string
  signal: AbortSignal
  say: (line: string) => void
}

/**
 * Applies the networks and firewalls of one member's guests, as configured in their instances, and reports in
 * the member's configuration what is applied. The agent reads the guests only from the daemon of its own
 * machine, so it works even if other members are down or hang.
 */
export class Agent {
  readonly #ctx: IncusContext
  readonly #options: AgentOptions
  readonly #network: HostNetwork
  /** Guests by instance name. */
  #guests = new Map<string, GuestNetwork>()
  /** The PCI addresses of the GPUs of each instance, by instance name. */
  #gpus = new Map<string, string>()
  #reported = ''
  #limitsNetwork = false
  #self = { name: '', isClustered: false, address: '' }
  readonly #changed = new Set<string>()
  #isFullReadDue = true
  #wake: () => void = () => {}

  constructor(ctx: IncusContext, options: AgentOptions) {
    this.#ctx = ctx
    this.#options = options
    this.#network = new HostNetwork(options.stateDir)
  }

  async run(): Promise<void> {
    const { signal, say } = this.#options
    await this.#network.prepare()
    await this.#restore()
    say('the packet filter is loaded')
    // After a boot, the bridges and filters must exist before Incus starts the guests. systemd starts Incus
    // only after this call.
    if (process.env.NOTIFY_SOCKET) await run('systemd-notify', ['--ready'])
    const events = new IncusEvents(
      this.#ctx.client,
      (name, member) => this.#addChange(name, member),
      () => this.#requestFullRead(),
    )
    const timer = setInterval(() => this.#requestFullRead(), fullReadMs)
    signal.addEventListener('abort', () => this.#wake(), { once: true })
    try {
      while (!signal.aborted) {
        await this.#applyChanges().catch(async (error: Error) => {
          if (signal.aborted) return
          say(`changes not applied, will retry: ${error.message}`)
          this.#isFullReadDue = true
          await sleep(retryMs, undefined, { signal }).catch(() => {})
        })
        await this.#nextChange(signal)
      }
    } finally {
      clearInterval(timer)
      this.#network.stop()
      await events.close()
    }
  }

  /** Ignores events of other members. Without a cluster, events do not name a member. */
  #addChange(name: string, member: string): void {
    if (this.#self.isClustered && member !== this.#self.name) return
    this.#changed.add(name)
    this.#wake()
  }

  #requestFullRead(): void {
    this.#isFullReadDue = true
    this.#wake()
  }

  async #nextChange(signal: AbortSignal): Promise<void> {
    if (!this.#isFullReadDue && this.#changed.size === 0 && !signal.aborted)
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    if (!signal.aborted) await sleep(gatherMs)
  }

  async #applyChanges(): Promise<void> {
    const isFullRead = this.#isFullReadDue
    const names = [...this.#changed]
    this.#isFullReadDue = false
    this.#changed.clear()
    if (isFullRead) await this.#readAll()
    else await Promise.all(names.map((name) => this.#read(name)))
    const guests = [...this.#guests.values()]
    await this.#network.apply(guests, this.#self.address)
    await this.#save(guests)
    const applied = Object.fromEntries(guests.map((guest) => [guest.vmId, versionOf(guest)]))
    const kernel = { filtersInternal: await filtersInternal(), limitsNetwork: this.#limitsNetwork }
    const gpuChecks = checksOf(await scanGpus('/sys'), this.#gpus.values())
    await this.#report({ ...kernel, gpuChecks, applied })
  }

  async #readAll(): Promise<void> {
    const { environment, config } = await serverInfo(this.#ctx, this.#limit())
    const { server_name: name, server_clustered: isClustered } = environment
    const [address = ''] = (config['cluster.https_address'] ?? '').split(':')
    this.#self = { name, isClustered, address: isClustered ? address : '' }
    this.#limitsNetwork ||= await canLimitNetwork()
    // An operator may have removed the report.
    const reported = isClustered ? await findMember(this.#ctx, name, this.#limit()) : { config }
    this.#reported = reported.config[agentKey] ?? ''
    const query = { recursion: '1' }
    const instances = await this.#ctx.client.get<Instance[]>('/1.0/instances', {
      ...{ signal: this.#limit(), timeoutMs: readMs, query, headers: localOnly },
    })
    this.#gpus = new Map(instances.map(({ name, config }) => [name, config[marks.gpus] ?? '']))
    this.#guests = new Map(
      instances.flatMap(({ name, config }) => {
        const guest = guestNetworkOf(config)
        return guest ? [[name, guest] as const] : []
      }),
    )
  }

  async #read(name: string): Promise<void> {
    const path = `/1.0/instances/${name}`
    const instance = await this.#ctx.client.find<Instance>(path, { signal: this.#limit(), timeoutMs: readMs })
    const isHere = instance && (!this.#self.isClustered || instance.location === this.#self.name)
    if (isHere) this.#gpus.set(name, instance.config[marks.gpus] ?? '')
    else this.#gpus.delete(name)
    const guest = isHere ? guestNetworkOf(instance.config) : null
    if (isHere && !guest && instance.config[guestNetworkKey])
      this.#options.say(`the network of ${name} is invalid; its traffic is dropped`)
    if (guest) this.#guests.set(name, guest)
    else this.#guests.delete(name)
  }

  async #report(report: AgentReport): Promise<void> {
    const text = JSON.stringify(report)
    if (text === this.#reported) return
    const signal = this.#limit()
    const config = { [agentKey]: text }
    if (this.#self.isClustered) await changeMember(this.#ctx, this.#self.name, signal, () => config)
    else await this.#ctx.client.change('PATCH', '/1.0', { config }, { signal })
    this.#reported = text
  }

  #limit = () => AbortSignal.any([this.#options.signal, AbortSignal.timeout(readMs)])

  async #restore(): Promise<void> {
    const saved = await readFile(this.#file, 'utf8').catch(() => '[]')
    const guests = (JSON.parse(saved) as GuestNetwork[]).flatMap(
      (guest) => guestNetworkOf({ [guestNetworkKey]: JSON.stringify(guest) }) ?? [],
    )
    await this.#network.apply(guests, '')
  }

  async #save(guests: GuestNetwork[]): Promise<void> {
    await writeFile(`${this.#file}.new`, JSON.stringify(guests), { mode: 0o600 })
    await rename(`${this.#file}.new`, this.#file)
  }

  get #file(): string {
    return join(this.#options.stateDir, 'guests.json')
  }
}

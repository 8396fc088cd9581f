import { createServer, type Server, type Socket } from 'node:net'
import { Egress } from './egress.ts'
import { type Greeting, sshGreeting } from './greeting.ts'
import { GuestLink, join } from './guest-link.ts'
import type { Counters, ForwardedVm, VmForwards } from './protocol.ts'
import { decide, sshGuestPort } from './rules.ts'

/** Port 22 where the system lets us, else this. */
const sshFallbackPort = 2222

interface OpenConnection {
  client: Socket
  guestPort: number
  source: string
  sourcePort: number
}

/** The public side of one VM: its listeners, its open connections and the rules that govern both. */
export class VmForwarder {
  #vm: ForwardedVm
  readonly #egress = new Egress()
  readonly #link: GuestLink
  readonly #listeners = new Map<number, { server: Server; publicPort: number }>()
  readonly #connections = new Set<OpenConnection>()
  #failures: string[] = []
  readonly #counters: Counters = { accepted: 0, denied: 0, cut: 0, bytesIn: 0, bytesOut: 0, byRule: {} }

  constructor(vm: ForwardedVm, socketPath: string) {
    this.#vm = vm
    this.#link = new GuestLink(socketPath, vm.accessMac, this.#egress)
  }

  /** In force when it returns: listeners stand, and connections that the rules no longer allow are cut. */
  async update(vm: ForwardedVm): Promise<void> {
    if (vm.publicAddress !== this.#vm.publicAddress) await this.#unlistenAll()
    this.#vm = vm
    this.#egress.update(vm.egressAllow, vm.rules)
    for (const connection of this.#connections) {
      const verdict = decide(vm.rules, { ...connection, destinationPort: connection.guestPort })
      if (verdict.isAllowed) continue
      this.#counters.cut += 1
      connection.client.resetAndDestroy()
    }
    const wanted = vm.publicAddress === '' ? [] : vm.ports
    for (const guestPort of this.#listeners.keys())
      if (!wanted.includes(guestPort)) await this.#unlisten(guestPort)
    this.#failures = []
    for (const guestPort of wanted) if (!this.#listeners.has(guestPort)) await this.#listen(guestPort)
  }

  describe(isOnSegment: boolean): VmForwards {
    return {
      sshPort: this.#listeners.get(sshGuestPort)?.publicPort ?? 0,
      ports: [...this.#listeners.keys()].sort((a, b) => a - b),
      failures: this.#failures,
      isOnSegment,
      counters: this.#counters,
    }
  }

  greeting(timeoutMs: number, hostKey: string): Promise<Greeting> {
    return sshGreeting(this.#link.connect(sshGuestPort), timeoutMs, hostKey)
  }

  async close(): Promise<void> {
    this.#egress.close()
    this.#link.close()
    await this.#unlistenAll()
  }

  async #unlistenAll(): Promise<void> {
    for (const connection of this.#connections) connection.client.destroy()
    for (const guestPort of this.#listeners.keys()) await this.#unlisten(guestPort)
  }

  async #listen(guestPort: number): Promise<void> {
    const candidates = guestPort === sshGuestPort ? [sshGuestPort, sshFallbackPort] : [guestPort]
    for (const publicPort of candidates) {
      const server = createServer({ pauseOnConnect: true, allowHalfOpen: true }, (client) =>
        this.#accept(client, guestPort),
      )
      const failure = await new Promise<NodeJS.ErrnoException | null>((resolve) => {
        server.once('error', resolve)
        server.listen({ host: this.#vm.publicAddress, port: publicPort }, () => resolve(null))
      })
      if (!failure) {
        server.on('error', () => {})
        this.#listeners.set(guestPort, { server, publicPort })
        return
      }
      this.#failures.push(`${this.#vm.publicAddress}:${publicPort} ${failure.code}`)
    }
  }

  async #unlisten(guestPort: number): Promise<void> {
    const listener = this.#listeners.get(guestPort)
    this.#listeners.delete(guestPort)
    for (const connection of this.#connections)
      if (connection.guestPort === guestPort) connection.client.destroy()
    if (listener) await new Promise((resolve) => listener.server.close(resolve))
  }

  #accept(client: Socket, guestPort: number): void {
    client.on('error', () => {})
    const source = client.remoteAddress ?? ''
    const sourcePort = client.remotePort ?? 0
    const verdict = decide(this.#vm.rules, { source, sourcePort, destinationPort: guestPort })
    this.#counters.byRule[verdict.ruleId] = (this.#counters.byRule[verdict.ruleId] ?? 0) + 1
    if (!verdict.isAllowed || !this.#link.isConnected) {
      this.#counters.denied += 1
      client.resetAndDestroy()
      return
    }
    this.#counters.accepted += 1
    this.#join({ client, guestPort, source, sourcePort })
  }

  #join(connection: OpenConnection): void {
    const { client } = connection
    const guest = this.#link.connect(connection.guestPort)
    client.setNoDelay(true)
    this.#connections.add(connection)
    client.on('data', (chunk) => {
      this.#counters.bytesIn += chunk.length
    })
    guest.on('data', (chunk) => {
      this.#counters.bytesOut += chunk.length
    })
    guest.on('error', () => client.resetAndDestroy())
    join(guest, client)
    client.on('close', () => this.#connections.delete(connection))
  }
}

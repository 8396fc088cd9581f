import { createServer, type Server, type Socket } from 'node:net'
import { Egress } from './egress.ts'
import { GuestLink, join } from './guest-link.ts'
import type { ForwardedVm, VmForwards } from './protocol.ts'
import type { NetworkLimits } from './rate-limit.ts'
import { type InboundConnection, isInboundAllowed, sshGuestPort } from './rules.ts'
import { probeSsh, type SshProbeResult } from './ssh-probe.ts'

/** Used for SSH if port 22 is not available. */
const sshFallbackPort = 2222

interface OpenConnection extends InboundConnection {
  client: Socket
}

/** The public side of one VM: its listeners, its open connections, and the rules for both. */
export class VmForwarder {
  /** Shared with the interface on the tenant network. */
  readonly limits: NetworkLimits
  #vm: ForwardedVm
  readonly #egress = new Egress()
  readonly #link: GuestLink
  readonly #listeners = new Map<number, { server: Server; publicPort: number }>()
  readonly #connections = new Set<OpenConnection>()
  #failures: string[] = []

  constructor(vm: ForwardedVm, socketPath: string, limits: NetworkLimits) {
    this.#vm = vm
    this.limits = limits
    this.#link = new GuestLink(socketPath, vm.accessMac, this.#egress, limits)
  }

  /** When this returns, the ports are open, and connections that the rules no longer allow are closed. */
  async update(vm: ForwardedVm): Promise<void> {
    if (vm.publicAddress !== this.#vm.publicAddress) await this.#unlistenAll()
    this.#vm = vm
    this.#egress.update(vm.egressAllow, vm.rules)
    for (const connection of this.#connections)
      if (!isInboundAllowed(vm.rules, connection)) connection.client.resetAndDestroy()
    const wanted = vm.publicAddress === '' ? [] : vm.ports
    for (const guestPort of this.#listeners.keys())
      if (!wanted.includes(guestPort)) await this.#unlisten(guestPort)
    this.#failures = []
    for (const guestPort of wanted) if (!this.#listeners.has(guestPort)) await this.#listen(guestPort)
  }

  describe(): VmForwards {
    return { sshPort: this.#listeners.get(sshGuestPort)?.publicPort ?? 0, failures: this.#failures }
  }

  get traffic(): { receivedBytes: number; sentBytes: number } {
    return this.#link.traffic
  }

  probeSsh(timeoutMs: number, hostKey: string): Promise<SshProbeResult> {
    return probeSsh(this.#link.connect(sshGuestPort), timeoutMs, hostKey)
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
      if (connection.destinationPort === guestPort) connection.client.destroy()
    if (listener) await new Promise((resolve) => listener.server.close(resolve))
  }

  #accept(client: Socket, destinationPort: number): void {
    client.on('error', () => {})
    const { remoteAddress: source = '', remotePort: sourcePort = 0 } = client
    const connection = { client, source, sourcePort, destinationPort }
    if (!isInboundAllowed(this.#vm.rules, connection) || !this.#link.isConnected) {
      client.resetAndDestroy()
      return
    }
    const guest = this.#link.connect(destinationPort)
    client.setNoDelay(true)
    this.#connections.add(connection)
    guest.on('error', () => client.resetAndDestroy())
    join(guest, client)
    client.on('close', () => this.#connections.delete(connection))
  }
}

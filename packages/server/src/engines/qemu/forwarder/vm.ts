import { readFileSync } from 'node:fs'
import { connect, createServer, type Server, type Socket } from 'node:net'
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
  readonly #listeners = new Map<number, { server: Server; publicPort: number }>()
  readonly #connections = new Set<OpenConnection>()
  #failures: string[] = []
  readonly #counters: Counters = { accepted: 0, denied: 0, cut: 0, bytesIn: 0, bytesOut: 0, byRule: {} }

  constructor(vm: ForwardedVm) {
    this.#vm = vm
  }

  /** In force when it returns: listeners stand, and connections that the rules no longer allow are cut. */
  async update(vm: ForwardedVm): Promise<void> {
    if (vm.publicAddress !== this.#vm.publicAddress) await this.close()
    this.#vm = vm
    for (const connection of this.#connections) {
      const verdict = decide(vm.rules, { ...connection, destinationPort: connection.guestPort })
      if (verdict.isAllowed) continue
      this.#counters.cut += 1
      connection.client.resetAndDestroy()
    }
    const wanted = vm.publicAddress === '' ? [] : vm.backend.ports.map(([guestPort]) => guestPort)
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

  async close(): Promise<void> {
    for (const connection of this.#connections) connection.client.destroy()
    for (const guestPort of this.#listeners.keys()) await this.#unlisten(guestPort)
  }

  async #listen(guestPort: number): Promise<void> {
    const candidates = guestPort === sshGuestPort ? [sshGuestPort, sshFallbackPort] : [guestPort]
    for (const publicPort of candidates) {
      const server = createServer({ pauseOnConnect: true }, (client) => this.#accept(client, guestPort))
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
    const backend = this.#backendOf(guestPort)
    this.#counters.byRule[verdict.ruleId] = (this.#counters.byRule[verdict.ruleId] ?? 0) + 1
    if (!verdict.isAllowed || !backend || !isOurListener(backend)) {
      this.#counters.denied += 1
      client.resetAndDestroy()
      return
    }
    this.#counters.accepted += 1
    this.#join({ client, guestPort, source, sourcePort }, backend)
  }

  #join(connection: OpenConnection, backend: { host: string; port: number }): void {
    const { client } = connection
    const guest = connect({ ...backend, noDelay: true })
    client.setNoDelay(true)
    this.#connections.add(connection)
    client.on('data', (chunk) => {
      this.#counters.bytesIn += chunk.length
    })
    guest.on('data', (chunk) => {
      this.#counters.bytesOut += chunk.length
    })
    client.pipe(guest)
    guest.pipe(client)
    guest.on('error', () => client.resetAndDestroy())
    guest.on('close', () => client.destroySoon())
    client.on('close', () => {
      this.#connections.delete(connection)
      guest.destroy()
    })
  }

  #backendOf(guestPort: number): { host: string; port: number } | null {
    const port = this.#vm.backend.ports.find(([candidate]) => candidate === guestPort)?.[1]
    return port === undefined ? null : { host: this.#vm.backend.address, port }
  }
}

/** A stranger's process that took the backend's place must not receive a tenant's connection. */
function isOurListener(backend: { host: string; port: number }): boolean {
  const address = backend.host
    .split('.')
    .reverse()
    .map((byte) => Number(byte).toString(16).padStart(2, '0'))
    .join('')
  const local = `${address}:${backend.port.toString(16).padStart(4, '0')}`.toUpperCase()
  const ownUid = String(process.getuid?.())
  return readFileSync('/proc/net/tcp', 'utf8')
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .some((fields) => fields[1] === local && fields[3] === '0A' && fields[7] === ownUid)
}

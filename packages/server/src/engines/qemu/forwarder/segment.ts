import { connect, type Socket } from 'node:net'

const retryMs = 250
const maxFrameBytes = 70_000
/** A guest that does not read loses frames, as on a real wire, instead of filling our memory. */
const maxQueuedBytes = 4 * 1024 * 1024

interface Port {
  vmId: string
  networkId: string
  macAddress: string
  socketPath: string
  socket: Socket | null
  retry: NodeJS.Timeout | null
  pending: Buffer
}

/**
 * A virtual switch per tenant network. Each QEMU listens on a unix socket in its own folder and is dialled from here,
 * so that a restarted switch finds every guest again. A guest can send from its own hardware address only.
 */
export class Segments {
  readonly #ports = new Map<string, Port>()

  plug(vmId: string, networkId: string, macAddress: string, socketPath: string): void {
    const known = this.#ports.get(vmId)
    if (known && known.networkId === networkId && known.socketPath === socketPath) return
    this.unplug(vmId)
    const mac = macAddress.toLowerCase().replaceAll(':', '')
    const port: Port = {
      vmId,
      networkId,
      macAddress: mac,
      socketPath,
      socket: null,
      retry: null,
      pending: Buffer.alloc(0),
    }
    this.#ports.set(vmId, port)
    this.#dial(port)
  }

  unplug(vmId: string): void {
    const port = this.#ports.get(vmId)
    this.#ports.delete(vmId)
    if (port?.retry) clearTimeout(port.retry)
    port?.socket?.destroy()
  }

  isConnected(vmId: string): boolean {
    return this.#ports.get(vmId)?.socket?.readyState === 'open'
  }

  #dial(port: Port): void {
    const socket = connect(port.socketPath)
    port.socket = socket
    port.pending = Buffer.alloc(0)
    socket.on('data', (chunk) => this.#receive(port, chunk))
    socket.on('error', () => {})
    socket.on('close', () => {
      if (this.#ports.get(port.vmId) === port) port.retry = setTimeout(() => this.#dial(port), retryMs)
    })
  }

  /** QEMU's stream framing: four bytes of length, then the Ethernet frame. */
  #receive(port: Port, chunk: Buffer): void {
    port.pending = port.pending.length === 0 ? chunk : Buffer.concat([port.pending, chunk])
    while (port.pending.length >= 4) {
      const length = port.pending.readUInt32BE(0)
      if (length > maxFrameBytes) {
        port.socket?.destroy()
        return
      }
      if (port.pending.length < 4 + length) return
      this.#deliver(port, port.pending.subarray(0, 4 + length))
      port.pending = port.pending.subarray(4 + length)
    }
  }

  #deliver(from: Port, framed: Buffer): void {
    if (framed.length < 4 + 14 || framed.toString('hex', 10, 16) !== from.macAddress) return
    const destination = framed.toString('hex', 4, 10)
    const isForMany = (framed[4]! & 1) === 1
    for (const to of this.#ports.values()) {
      if (to === from || to.networkId !== from.networkId) continue
      if (!isForMany && to.macAddress !== destination) continue
      if (to.socket?.readyState === 'open' && to.socket.writableLength < maxQueuedBytes)
        to.socket.write(Buffer.from(framed))
    }
  }
}

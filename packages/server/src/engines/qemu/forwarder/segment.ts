import { FrameSocket } from './frame-socket.ts'
import type { NetworkLimits } from './rate-limit.ts'

interface Port {
  networkId: string
  macAddress: string
  socketPath: string
  frames: FrameSocket
}

/** A virtual switch per tenant network. A guest can send only from its own MAC address. */
export class Segments {
  readonly #ports = new Map<string, Port>()

  plug(vmId: string, networkId: string, macAddress: string, socketPath: string, limits: NetworkLimits): void {
    const known = this.#ports.get(vmId)
    if (known && known.networkId === networkId && known.socketPath === socketPath) return
    this.unplug(vmId)
    const mac = macAddress.toLowerCase().replaceAll(':', '')
    const frames = new FrameSocket(socketPath, limits, (frame) => this.#deliver(port, frame))
    const port: Port = { networkId, macAddress: mac, socketPath, frames }
    this.#ports.set(vmId, port)
  }

  trafficOf(vmId: string): { receivedBytes: number; sentBytes: number } {
    return this.#ports.get(vmId)?.frames ?? { receivedBytes: 0, sentBytes: 0 }
  }

  unplug(vmId: string): void {
    const port = this.#ports.get(vmId)
    this.#ports.delete(vmId)
    port?.frames.close()
  }

  #deliver(from: Port, frame: Buffer): void {
    if (frame.length < 14 || frame.toString('hex', 6, 12) !== from.macAddress) return
    const destination = frame.toString('hex', 0, 6)
    const isGroupAddress = (frame[0]! & 1) === 1
    for (const to of this.#ports.values()) {
      if (to === from || to.networkId !== from.networkId) continue
      if (isGroupAddress || to.macAddress === destination) to.frames.send(frame)
    }
  }
}

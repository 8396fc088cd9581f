import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { type AddressInfo, connect, createServer, type Server } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { eventually } from '@slipway/testing/eventually.ts'
import type { IncusBench } from '../incus-bench.ts'

/** Listens on a unix socket and connects to a TCP address, in the network namespace of the client. */
const relayProgram = `
const net = require('node:net')
const [path, host, port] = process.argv.slice(1)
net.createServer((near) => {
  const far = net.connect(Number(port), host)
  near.pipe(far).pipe(near)
  for (const end of [near, far]) end.on('error', () => { near.destroy(); far.destroy() })
}).listen(path)
`

/** A local port that forwards to an address in the network of a bench, with an optional delay. */
export class Relay {
  readonly #server: Server
  readonly #child: ChildProcess
  readonly #path: string
  delayMs = 0

  /** The socket at this path connects the two networks. */
  constructor(bench: IncusBench, path: string, address: string, port: number) {
    this.#path = path
    const program = [process.execPath, '-e', relayProgram, path, address, String(port)]
    this.#child = spawn('nsenter', [`--net=/run/netns/${bench.client}`, ...program], { stdio: 'ignore' })
    this.#server = createServer((near) => {
      const far = connect(path)
      near.pipe(far)
      far.on('data', async (data) => {
        if (this.delayMs > 0) await sleep(this.delayMs)
        near.write(data)
      })
      far.on('end', () => near.end())
      for (const end of [near, far])
        end.on('error', () => {
          near.destroy()
          far.destroy()
        })
    })
  }

  /** Returns the host and port to connect to. */
  async open(): Promise<string> {
    await eventually(() => existsSync(this.#path), 60_000)
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  close(): void {
    this.#server.close()
    this.#child.kill('SIGKILL')
  }
}

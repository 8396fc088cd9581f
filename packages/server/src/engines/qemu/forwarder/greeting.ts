import type { Duplex } from 'node:stream'
import { HostKeyProbe } from './host-key-probe.ts'

/**
 * `greeted`: an SSH server answers, and it is the one that was expected. `stranger`: its host key is another.
 * `closed`: somebody is there who does not serve it yet. `silent`: before the guest's network is up there is nobody.
 */
export type Greeting = 'greeted' | 'stranger' | 'closed' | 'silent'

/** An SSH server that has said its name is slow to prove it on a busy, emulated machine. */
export const proofMs = 20_000

/** What comes from an SSH port within the time; of a server that has a host key to show (`ssh-ed25519 AAAA…`), that too. */
export function sshGreeting(connection: Duplex, timeoutMs: number, hostKey: string): Promise<Greeting> {
  return new Promise((resolve) => {
    let received = Buffer.alloc(0)
    let probe: HostKeyProbe | undefined
    const finish = (greeting: Greeting) => {
      clearTimeout(timer)
      resolve(greeting)
      connection.destroy()
    }
    let timer = setTimeout(() => finish('silent'), timeoutMs)
    connection.on('data', (chunk: Buffer) => {
      if (!probe) {
        received = Buffer.concat([received, chunk])
        if (received.length < 4) return
        if (received.subarray(0, 4).toString('latin1') !== 'SSH-') return finish('closed')
        if (hostKey === '') return finish('greeted')
        clearTimeout(timer)
        timer = setTimeout(() => finish('silent'), proofMs)
        probe = new HostKeyProbe(hostKey)
      }
      try {
        const step = probe.take(probe.hasBegun ? chunk : received)
        if (step.send.length > 0) connection.write(step.send)
        if (step.verdict) finish(step.verdict === 'proven' ? 'greeted' : 'stranger')
      } catch {
        finish('closed')
      }
    })
    connection.on('close', () => finish('closed'))
  })
}

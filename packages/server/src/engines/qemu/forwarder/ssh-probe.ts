import type { Duplex } from 'node:stream'
import { HostKeyProbe } from './host-key-probe.ts'

/**
 * `greeted`: an SSH server responds with the expected host key. `stranger`: an SSH server responds with a
 * different host key. `closed`: the guest responds, but not with SSH yet. `silent`: the guest does not
 * respond, because its network is not up yet.
 */
export type SshProbeResult = 'greeted' | 'stranger' | 'closed' | 'silent'

/** On a busy emulated machine, an SSH server needs a long time to prove its host key. */
export const proofMs = 20_000

/**
 * Checks what responds on an SSH port within the time limit. Unless `hostKey` (`ssh-ed25519 AAAA…`) is '',
 * the server must prove that it has this key.
 */
export function probeSsh(connection: Duplex, timeoutMs: number, hostKey: string): Promise<SshProbeResult> {
  return new Promise((resolve) => {
    let received = Buffer.alloc(0)
    let probe: HostKeyProbe | undefined
    const finish = (result: SshProbeResult) => {
      clearTimeout(timer)
      resolve(result)
      connection.destroy()
    }
    let timer = setTimeout(() => finish('silent'), timeoutMs)
    connection.on('data', (chunk: Buffer) => {
      let unread = chunk
      if (!probe) {
        received = Buffer.concat([received, chunk])
        unread = received
        if (received.length < 4) return
        if (received.subarray(0, 4).toString('latin1') !== 'SSH-') return finish('closed')
        if (hostKey === '') return finish('greeted')
        clearTimeout(timer)
        timer = setTimeout(() => finish('silent'), proofMs)
        probe = new HostKeyProbe(hostKey)
      }
      try {
        const step = probe.take(unread)
        if (step.send.length > 0) connection.write(step.send)
        if (step.verdict) finish(step.verdict === 'proven' ? 'greeted' : 'stranger')
      } catch {
        finish('closed')
      }
    })
    connection.on('close', () => finish('closed'))
  })
}

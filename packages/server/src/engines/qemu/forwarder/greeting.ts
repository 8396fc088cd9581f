import type { Duplex } from 'node:stream'

export type Greeting = 'greeted' | 'closed' | 'silent'

/**
 * What comes from an SSH port within the time. `closed` means that somebody is there who does not serve it yet; before
 * the guest's network is up there is nobody, which is `silent`.
 */
export function sshGreeting(connection: Duplex, timeoutMs: number): Promise<Greeting> {
  return new Promise((resolve) => {
    let received = ''
    const finish = (greeting: Greeting) => {
      clearTimeout(timer)
      resolve(greeting)
      connection.destroy()
    }
    const timer = setTimeout(() => finish('silent'), timeoutMs)
    connection.on('data', (chunk) => {
      received += chunk.toString('latin1')
      if (received.length >= 4) finish(received.startsWith('SSH-') ? 'greeted' : 'closed')
    })
    connection.on('close', () => finish('closed'))
  })
}

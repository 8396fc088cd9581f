import { connect } from 'node:net'

/**
 * What comes from an SSH port within the time. QEMU itself accepts long before the guest listens, so a connection made
 * early stays `silent`; `closed` means that somebody is there who does not serve it yet.
 */
export function sshGreeting(
  host: string,
  port: number,
  timeoutMs: number,
): Promise<'greeted' | 'closed' | 'silent'> {
  return new Promise((resolve) => {
    const socket = connect({ host, port })
    let received = ''
    const finish = (answer: 'greeted' | 'closed' | 'silent') => {
      clearTimeout(timer)
      socket.destroy()
      resolve(answer)
    }
    const timer = setTimeout(() => finish('silent'), timeoutMs)
    socket.on('data', (chunk) => {
      received += chunk.toString('latin1')
      if (received.length >= 4) finish(received.startsWith('SSH-') ? 'greeted' : 'closed')
    })
    socket.on('error', () => finish('closed'))
    socket.on('close', () => finish('closed'))
  })
}

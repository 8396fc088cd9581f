import { connect } from 'node:net'

/** Whether an SSH server greets there within the time. QEMU itself accepts long before the guest listens. */
export function greetsWithSsh(host: string, port: number, timeoutMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port })
    let received = ''
    const finish = (answer: boolean) => {
      clearTimeout(timer)
      socket.destroy()
      resolve(answer)
    }
    const timer = setTimeout(() => finish(false), timeoutMs)
    socket.on('data', (chunk) => {
      received += chunk.toString('latin1')
      if (received.length >= 4) finish(received.startsWith('SSH-'))
    })
    socket.on('error', () => finish(false))
    socket.on('close', () => finish(false))
  })
}

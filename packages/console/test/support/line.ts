import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** Opens a line to the service that can be cut, or go silent. */
export async function openLine(serviceUrl: string) {
  const { port: servicePort } = new URL(serviceUrl)
  const sockets = new Set<Socket>()
  let isSilent = false
  const server = createServer((near) => {
    const far = connect(Number(servicePort), '127.0.0.1')
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from)
      from.on('data', (chunk) => isSilent || to.write(chunk))
      from.on('end', () => isSilent || to.end())
      from.on('error', () => to.destroy())
      from.on('close', () => {
        sockets.delete(from)
        to.destroy()
      })
    }
  })
  let port = 0
  const restore = async () => {
    isSilent = false
    await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
    port = (server.address() as AddressInfo).port
  }
  /** Every connection breaks off, and no new one comes through. */
  const cut = async () => {
    const closed = new Promise((resolve) => server.close(resolve))
    for (const socket of sockets) socket.destroy()
    await closed
  }
  /** Nothing comes through any more, and neither side is told, as when a network loses every packet. */
  const silence = () => {
    isSilent = true
  }
  await restore()
  return { url: `http://127.0.0.1:${port}`, cut, restore, silence }
}

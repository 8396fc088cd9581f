import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** A line to the service that can be cut. */
export async function openLine(serviceUrl: string) {
  const { port: servicePort } = new URL(serviceUrl)
  const sockets = new Set<Socket>()
  const server = createServer((near) => {
    const far = connect(Number(servicePort), '127.0.0.1')
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from)
      from.pipe(to)
      from.on('error', () => to.destroy())
      from.on('close', () => {
        sockets.delete(from)
        to.destroy()
      })
    }
  })
  let port = 0
  const restore = async () => {
    await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
    port = (server.address() as AddressInfo).port
  }
  /** What goes over it breaks off, and nothing comes through any more. */
  const cut = async () => {
    const closed = new Promise((resolve) => server.close(resolve))
    for (const socket of sockets) socket.destroy()
    await closed
  }
  await restore()
  return { url: `http://127.0.0.1:${port}`, cut, restore }
}

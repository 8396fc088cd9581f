import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** Starts a proxy to the service whose connections can be cut or made silent. */
export async function openFaultyProxy(serviceUrl: string) {
  const { port: servicePort } = new URL(serviceUrl)
  const sockets = new Set<Socket>()
  let isSilent = false
  let isCut = false
  const server = createServer((near) => {
    // The port stays open while connections are cut.
    if (isCut) return near.resetAndDestroy()
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
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  /** Closes every connection and refuses new ones. */
  const cut = () => {
    isCut = true
    for (const socket of sockets) socket.destroy()
  }
  const restore = () => {
    isSilent = false
    isCut = false
  }
  /** Drops all data without closing the connections, like a network that loses every packet. */
  const silence = () => {
    isSilent = true
  }
  const close = async () => {
    cut()
    await new Promise((resolve) => server.close(resolve))
  }
  return { url: `http://127.0.0.1:${port}`, cut, restore, silence, close }
}

import { constants } from 'node:fs'
import { open } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { basename, dirname } from 'node:path'
import { createInterface } from 'node:readline'

/**
 * Connects to a unix socket through an open descriptor of its directory, because the path may be longer than
 * the 107 bytes of a socket address.
 */
export async function connectUnix(path: string, timeoutMs: number): Promise<Socket> {
  const directory = await open(dirname(path), constants.O_RDONLY | constants.O_DIRECTORY)
  try {
    return await new Promise<Socket>((resolve, reject) => {
      const socket = connect(`/proc/self/fd/${directory.fd}/${basename(path)}`)
      const timer = setTimeout(() => {
        socket.destroy()
        reject(new Error(`no connection within ${timeoutMs} ms`))
      }, timeoutMs)
      socket.once('connect', () => {
        clearTimeout(timer)
        resolve(socket)
      })
      socket.once('error', (error) => {
        clearTimeout(timer)
        reject(error)
      })
    })
  } finally {
    await directory.close()
  }
}

/** Calls `handle` for each line. The socket itself reports a broken connection, so the reader's error is ignored. */
export function onLines(socket: Socket, handle: (line: string) => void): void {
  createInterface({ input: socket })
    .on('line', handle)
    .on('error', () => {})
}

import { constants } from 'node:fs'
import { open } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { basename, dirname } from 'node:path'
import { createInterface } from 'node:readline'

/**
 * Connects to a unix socket whose full path may be longer than the 107 bytes that a socket address holds: the
 * directory is reached through a descriptor of our own.
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

/** Calls back per line. A broken connection is told by the socket's own `close`; the reader's copy of the error is dropped. */
export function onLines(socket: Socket, handle: (line: string) => void): void {
  createInterface({ input: socket })
    .on('line', handle)
    .on('error', () => {})
}

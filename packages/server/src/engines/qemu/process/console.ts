import { type EngineConsole, EngineError } from '../../engine.ts'
import { pathExists } from '../files.ts'
import { vmSocket } from '../paths.ts'
import { connectUnix } from '../unix-socket.ts'

const connectMs = 2_000

/**
 * Connects to the serial port of a running VM. All output is read and discarded: it is also in the log, and
 * QEMU would wait for a client that does not read.
 */
export async function openConsole(vmDir: string): Promise<EngineConsole> {
  const path = vmSocket(vmDir, 'serial')
  if (!(await pathExists(path)))
    throw new EngineError(
      'rejected',
      'The VM was started by a version of Slipway that had no consoles. Stop and start the VM.',
    )
  const socket = await connectUnix(path, connectMs).catch((cause) => {
    throw new EngineError('unavailable', 'the serial port does not accept a connection', { cause })
  })
  socket.on('error', () => {})
  socket.resume()
  const ended = new Promise<void>((resolve) => socket.once('close', () => resolve()))
  return {
    ended,
    close: () => socket.destroy(),
    write: (input) =>
      new Promise((resolve, reject) => {
        if (socket.destroyed) return reject(new EngineError('unavailable', 'the console has ended'))
        void ended.then(() => reject(new EngineError('unavailable', 'the console has ended')))
        socket.write(input, () => resolve())
      }),
  }
}

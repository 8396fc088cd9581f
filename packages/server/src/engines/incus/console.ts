import { setTimeout as sleep } from 'node:timers/promises'
import { WebSocket } from 'undici'
import { type EngineConsole, EngineError } from '../engine.ts'
import { unavailable } from './client.ts'
import type { IncusContext } from './context.ts'
import { instancePath } from './instances.ts'

/** If more input than this is unsent, a write waits. */
const maxUnsentBytes = 64 * 1024
const unsentPollMs = 20
const size = { width: 80, height: 24 }

/**
 * Connects to the console of an instance through two WebSockets of one Incus operation. One carries the data;
 * closing the other one also ends the console. While the console of a VM is open, Incus does not write the
 * VM's console log, so `onOutput` reads the output from the data WebSocket.
 */
export async function openConsole(
  ctx: IncusContext,
  vmId: string,
  signal: AbortSignal,
): Promise<EngineConsole> {
  const body = { type: 'console', ...size }
  const { operation, secrets } = await ctx.client
    .attach(`${instancePath(vmId)}/console`, body, { signal })
    .catch((error) => {
      throw unavailable(error)
    })
  const [data, control] = await Promise.all(
    ['0', 'control'].map((name) => connect(ctx, operation, secrets[name] ?? '', signal)),
  )
  const close = () => {
    data!.close()
    control!.close()
  }
  const ended = new Promise<void>((resolve) => {
    for (const socket of [data!, control!]) socket.addEventListener('close', () => resolve())
  })
  void ended.then(close)
  return {
    ended,
    close,
    async write(input) {
      if (data!.readyState !== WebSocket.OPEN) throw new EngineError('unavailable', 'the console has ended')
      data!.send(input)
      while (data!.bufferedAmount > maxUnsentBytes && data!.readyState === WebSocket.OPEN)
        await sleep(unsentPollMs)
    },
    onOutput(listener) {
      data!.addEventListener('message', ({ data: output }) => {
        // Incus sends an empty text message when the guest closes its side.
        if (typeof output !== 'string') listener(Buffer.from(output as ArrayBuffer))
      })
    },
  }
}

function connect(
  { client }: IncusContext,
  operation: string,
  secret: string,
  signal: AbortSignal,
): Promise<WebSocket> {
  const { origin, dispatcher } = client.connection
  const url = `${origin.replace(/^http/, 'ws')}${operation.split('?')[0]}/websocket?secret=${secret}`
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(url, { dispatcher })
    socket.binaryType = 'arraybuffer'
    const fail = () => {
      socket.close()
      reject(new EngineError('unavailable', 'Incus did not open the console'))
    }
    signal.addEventListener('abort', fail, { once: true })
    socket.addEventListener('error', fail)
    socket.addEventListener('open', () => {
      signal.removeEventListener('abort', fail)
      resolve(socket)
    })
  })
}

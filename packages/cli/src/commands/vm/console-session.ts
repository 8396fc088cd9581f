import { consoleProtocol } from '@slipway/contract/states'
import type { WebSocket } from 'ws'
import type { Cli } from '../../core/cli.ts'
import { command } from '../../core/command.ts'
import { namesProxy } from '../../core/fetch.ts'
import { idOf, refArgument } from '../../core/resource.ts'
import { CliError, exitCodes } from '../../errors/cli-error.ts'
import { EscapeFilter } from './console-escape.ts'
import { vms } from './resource.ts'

const normalClose = 1000

export const vmConsole = command<{ ref: string; read?: boolean; force?: boolean }>({
  name: 'console',
  summary: 'open the serial console of a VM',
  details:
    'Shows the last 64 KiB of the console and what follows, and sends what you type. The console works without a network in the VM. Type `~.` at the beginning of a line to leave, and `~~` for a tilde there. One session at a time can type; --read only watches. `-o` has no effect.',
  arguments: [refArgument(vms)],
  options: [
    { flags: '--read', description: 'watch only' },
    { flags: '--force', description: 'take over from a session that types' },
  ],
  examples: ['slipway vm console train-7', 'slipway vm console train-7 --read'],
  async run(cli, { ref, read, force }) {
    const target = { project_id: await cli.project(), vm_id: await idOf(cli, vms, ref) }
    const mode = read ? 'read' : 'write'
    const { url } = await cli.client.vmConsoleCreate(target, { mode, ...(force && { force }) })
    const socket = await connect(cli, new URL(url).pathname)
    cli.say(`Connected to the console of ${ref}. Type ~. at the beginning of a line to leave.`)
    await session(cli, socket)
  },
})

/** The ticket is opened where the command line reaches the service, which may not be its public URL. */
async function connect(cli: Cli, path: string): Promise<WebSocket> {
  const target = new URL(path, cli.settings.apiUrl)
  const [{ WebSocket }, { agent }] = await Promise.all([
    import('ws'),
    namesProxy()
      ? import('../../core/proxy.ts').then(({ viaProxy }) => viaProxy(target))
      : { agent: undefined },
  ])
  const socket = new WebSocket(target.href.replace(/^http/, 'ws'), consoleProtocol, {
    ...(agent && { agent }),
  })
  await new Promise<void>((resolve, reject) => {
    socket.once('open', resolve)
    socket.once('error', (cause) =>
      reject(new CliError('unavailable', `The console did not open: ${cause.message}`, exitCodes.error)),
    )
  })
  socket.on('error', () => {})
  return socket
}

/** Returns when the person leaves; throws if the service ends the session. */
async function session(cli: Cli, socket: WebSocket): Promise<void> {
  const { stdin, stdout } = cli.io
  const filter = new EscapeFilter()
  const setRaw = (isRaw: boolean) => {
    if (stdin.isTTY) (stdin as NodeJS.ReadStream).setRawMode(isRaw)
  }
  const type = (input: Buffer) => {
    const { bytes, isLeaving } = filter.take(Buffer.from(input))
    if (bytes.length > 0) socket.send(bytes)
    if (isLeaving) socket.close(normalClose)
  }
  setRaw(true)
  stdin.on('data', type)
  socket.on('message', (data: Buffer, isBinary) => {
    if (isBinary) stdout.write(data)
  })
  try {
    const { code, reason } = await new Promise<{ code: number; reason: string }>((resolve) => {
      socket.once('close', (closeCode, text) => resolve({ code: closeCode, reason: String(text) }))
    })
    if (code !== normalClose)
      throw new CliError('closed', `The console was closed. ${reason}`.trim(), exitCodes.error)
    cli.say(`\nThe console was closed. ${reason}`.trimEnd())
  } finally {
    setRaw(false)
    stdin.off('data', type)
    stdin.pause()
  }
}

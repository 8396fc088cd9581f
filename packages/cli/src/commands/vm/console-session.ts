import { consoleProtocol } from '@slipway/contract/states'
import type { WebSocket } from 'ws'
import type { Cli } from '../../core/cli.ts'
import { command } from '../../core/command.ts'
import { usesProxy } from '../../core/fetch.ts'
import { idOf, refArgument } from '../../core/resource.ts'
import { CliError, exitCodes } from '../../errors/cli-error.ts'
import { EscapeFilter } from './console-escape.ts'
import { vms } from './resource.ts'

const normalClose = 1000

export const vmConsole = command<{ ref: string; read?: boolean; force?: boolean }>({
  name: 'console',
  summary: 'open the serial console of a VM',
  details:
    'Shows the last 64 KiB of console output and all new output, and sends what you type. The console works even if the VM has no network. At the beginning of a line, type `~.` to leave, or `~~` for a tilde. Only one session at a time can type; use --read to only watch. `-o` has no effect.',
  arguments: [refArgument(vms)],
  options: [
    { flags: '--read', description: 'watch only' },
    { flags: '--force', description: 'take over from the session that can type' },
  ],
  examples: ['slipway vm console train-7', 'slipway vm console train-7 --read'],
  async run(cli, { ref, read, force }) {
    const target = { project_id: await cli.project(), vm_id: await idOf(cli, vms, ref) }
    const mode = read ? 'read' : 'write'
    const { url } = await cli.client.vmConsoleCreate(target, { mode, ...(force && { force }) })
    const socket = await connect(cli, new URL(url).pathname)
    cli.say(`Connected to the console of ${ref}. Type ~. at the beginning of a line to leave.`)
    await runSession(cli, socket)
  },
})

/** Connects through the CLI's API URL, which may differ from the service's public URL. */
async function connect(cli: Cli, path: string): Promise<WebSocket> {
  const target = new URL(path, cli.settings.apiUrl)
  const [{ WebSocket }, { agent }] = await Promise.all([
    import('ws'),
    usesProxy()
      ? import('../../core/proxy.ts').then(({ viaProxy }) => viaProxy(target))
      : { agent: undefined },
  ])
  const socket = new WebSocket(target.href.replace(/^http/, 'ws'), consoleProtocol, {
    ...(agent && { agent }),
  })
  await new Promise<void>((resolve, reject) => {
    socket.once('open', resolve)
    socket.once('error', (cause) =>
      reject(new CliError('unavailable', `Could not open the console: ${cause.message}`, exitCodes.error)),
    )
  })
  socket.on('error', () => {})
  return socket
}

/** Passes input and output on until the user leaves. Throws if the service ends the session. */
async function runSession(cli: Cli, socket: WebSocket): Promise<void> {
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

import { connect, createServer } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { command } from '../../core/command.ts'
import { parseNumber } from '../../core/parse.ts'
import { refArgument } from '../../core/resource.ts'
import { UsageError } from '../../errors/cli-error.ts'
import { print } from '../../output/print.ts'
import { vms } from './resource.ts'
import { sshArguments } from './ssh-destination.ts'
import { identityOption, reachableVm, runToEnd, sshOptions } from './ssh-program.ts'

/** SSH is not HTTP, so no URL is printed for this port. */
const sshPort = 22

interface TunnelInput {
  ref: string
  port: string
  local?: number
  identity?: string
}

export const vmTunnel = command<TunnelInput>({
  name: 'tunnel',
  summary: 'forward a local port to a VM',
  details:
    'Connects you to a program that listens only on the VM’s localhost, such as Jupyter, without a firewall rule. Prints the local URL when the tunnel is open, and runs until Ctrl-C.',
  arguments: [refArgument(vms), { syntax: '<port>', description: 'port on the VM' }],
  options: [
    {
      flags: '--local <port>',
      description: 'local port (default: the remote port number, or a free port if that port is in use)',
      parse: parseNumber,
    },
    identityOption,
  ],
  examples: ['slipway vm tunnel train-7 8888', 'slipway vm tunnel train-7 6006 --local 16006'],
  async run(cli, { ref, port, local, identity }) {
    const remotePort = portOf(port)
    const { vm, destination } = await reachableVm(cli, ref)
    const localPort = local === undefined ? await freePort(remotePort) : portOf(String(local))
    const forward = [
      '-N',
      '-o',
      'ExitOnForwardFailure=yes',
      '-L',
      `127.0.0.1:${localPort}:127.0.0.1:${remotePort}`,
    ]
    const words = [...sshOptions(cli, vm, identity), ...forward, ...sshArguments(destination)]
    cli.exitCode = await runToEnd(cli, 'ssh', words, async (child) => {
      const hasExited = () => child.exitCode !== null || child.signalCode !== null
      while (!hasExited() && !(await isListening(localPort))) await pause(100)
      if (hasExited()) return
      const address = `127.0.0.1:${localPort}`
      print(cli, remotePort === sshPort ? address : `http://${address}`)
      cli.note(`Forwarding to port ${remotePort} of ${vm.name}. Press Ctrl-C to stop.`)
    })
  },
})

function portOf(text: string): number {
  const port = Number(text)
  if (!Number.isInteger(port) || port < 1 || port > 65535)
    throw new UsageError(`${text} is not a port. Expected a number from 1 to 65535.`)
  return port
}

/** Returns the wanted port if it is free, otherwise a port that the system chooses. */
async function freePort(wanted: number): Promise<number> {
  return (await tryPort(wanted)) ?? (await tryPort(0)) ?? wanted
}

function tryPort(port: number): Promise<number | undefined> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(undefined))
    server.listen(port, '127.0.0.1', () => {
      const address = server.address()
      server.close(() => resolve(typeof address === 'object' ? address?.port : undefined))
    })
  })
}

function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
    socket.once('connect', () => socket.destroy())
  })
}

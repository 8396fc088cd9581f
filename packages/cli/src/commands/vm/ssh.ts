import { command, type OptionSpec } from '../../core/command.ts'
import { refArgument } from '../../core/resource.ts'
import { vms } from './resource.ts'
import { sshArguments } from './ssh-destination.ts'
import { identityOption, reachableVm, runToEnd, sshOptions } from './ssh-program.ts'

interface SshInput {
  ref: string
  command: string[]
  identity?: string
  L?: string[]
  R?: string[]
  D?: string[]
  A?: boolean
  N?: boolean
}

const forward = (flags: string, description: string): OptionSpec => ({ flags, description, repeats: true })

export const vmSsh = command<SshInput>({
  name: 'ssh',
  summary: 'open a shell on a VM, or run a command there',
  details:
    "Runs the system's ssh (OpenSSH 8.5 or later) with the user, address and port of the VM, and exits with the exit code of ssh. " +
    'The host key of the VM is verified even at the first connection, because the service created it. If the guest ' +
    'created its own host key, the key is stored at the first connection, and a different key is rejected later.',
  arguments: [
    refArgument(vms),
    { syntax: '[command...]', description: 'after `--`: the command to run on the VM' },
  ],
  options: [
    identityOption,
    forward('-L <forward>', 'forward a local port, as in ssh: 8888:localhost:8888'),
    forward('-R <forward>', 'forward a remote port to this computer'),
    forward('-D <port>', 'run a SOCKS proxy on a local port'),
    { flags: '-A', description: 'forward the SSH agent' },
    { flags: '-N', description: 'do not run a command; only forward ports' },
  ],
  examples: [
    'slipway vm ssh train-7',
    'slipway vm ssh train-7 -- nvidia-smi',
    'slipway vm ssh train-7 -L 6006:localhost:6006',
    'slipway vm ssh train-7 -i ~/.ssh/work',
  ],
  async run(cli, { ref, command, identity, L, R, D, A, N }) {
    const { vm, destination } = await reachableVm(cli, ref)
    const forwards = Object.entries({ L, R, D }).flatMap(([flag, values = []]) =>
      values.flatMap((value) => [`-${flag}`, value]),
    )
    const words = [...sshOptions(cli, vm, identity), ...forwards, ...(A ? ['-A'] : []), ...(N ? ['-N'] : [])]
    cli.exitCode = await runToEnd(cli, 'ssh', [...words, ...sshArguments(destination), ...command])
  },
})

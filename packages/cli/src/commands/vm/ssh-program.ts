import { type ChildProcess, spawn } from 'node:child_process'
import { constants } from 'node:os'
import type { SshDestination } from '@slipway/contract/names'
import type { Vm } from '@slipway/sdk'
import type { Cli } from '../../core/cli.ts'
import type { OptionSpec } from '../../core/command.ts'
import { idOf } from '../../core/resource.ts'
import { CliError, exitCodes } from '../../errors/cli-error.ts'
import { stateWord } from '../../output/state.ts'
import { findRememberedKey } from './remembered-keys.ts'
import { vms } from './resource.ts'
import { hostKeyRules, isSimulated, sshDestination } from './ssh-destination.ts'

export const identityOption: OptionSpec = {
  flags: '-i, --identity <file>',
  description: 'private key (default: the key that vm create used on this computer)',
  complete: 'file',
}

/** Returns the VM and its SSH destination, or throws an error that says why it cannot be reached. */
export async function reachableVm(cli: Cli, ref: string): Promise<{ vm: Vm; destination: SshDestination }> {
  const vm = await cli.client.vmGet({ project_id: await cli.project(), vm_id: await idOf(cli, vms, ref) })
  const destination = sshDestination(vm)
  if (!destination) {
    const reason = vm.state === 'STATE_RUNNING' ? 'it has no public address' : `it is ${stateWord(vm.state)}`
    throw new CliError('conflict', `${vm.name} cannot be reached by SSH: ${reason}.`, exitCodes.conflict)
  }
  if (isSimulated(destination)) {
    throw new CliError(
      'conflict',
      `${vm.name} is simulated: there is no machine behind ${destination.host}.`,
      exitCodes.conflict,
      ['Locations with the engine qemu or incus run real VMs.'],
    )
  }
  return { vm, destination }
}

/** Returns the options that ssh and scp share: the trusted host key, the time limit, and the private key. */
export function sshOptions(cli: Cli, vm: Vm, given: string | undefined): string[] {
  const identity = given ?? findRememberedKey(cli.env, vm.ssh_public_keys ?? [])
  const options = [...hostKeyRules(vm), ['ConnectTimeout', '15']]
  return [
    ...options.flatMap(([option, value]) => ['-o', `${option}=${value}`]),
    ...(identity ? ['-i', identity] : []),
  ]
}

/** Runs a program in this terminal and returns its exit code: 128 plus the signal number after a signal. */
export function runToEnd(
  cli: Cli,
  program: string,
  words: string[],
  onStart?: (child: ChildProcess) => void,
): Promise<number> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, words, { stdio: 'inherit', env: cli.env })
    // Ctrl-C is handled by the child process.
    const ignore = () => {}
    process.on('SIGINT', ignore)
    child.once('error', (error: NodeJS.ErrnoException) =>
      reject(
        error.code === 'ENOENT'
          ? new CliError('no_ssh', `${program} is not installed.`, exitCodes.error)
          : error,
      ),
    )
    child.once('close', (code, signal) => {
      process.off('SIGINT', ignore)
      resolve(code ?? 128 + (signal ? constants.signals[signal] : 0))
    })
    onStart?.(child)
  })
}

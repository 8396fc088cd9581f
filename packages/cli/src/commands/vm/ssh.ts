import { spawn } from 'node:child_process'
import { constants } from 'node:os'
import { command } from '../../core/command.ts'
import { idOf, refArgument } from '../../core/resource.ts'
import { CliError, exitCodes } from '../../errors/cli-error.ts'
import { vms } from './resource.ts'
import { hostKeyRules, sshArguments, sshDestination } from './ssh-destination.ts'

export const vmSsh = command<{ ref: string; command: string[]; identity?: string }>({
  name: 'ssh',
  summary: 'open a shell on a VM, or run a command there',
  details:
    "Runs the system's ssh with the right user, address and port, and ends with its exit code. The VM's host key is " +
    'remembered at the first connection, under the id of the VM, and has to stay the same.',
  arguments: [refArgument(vms), { syntax: '[command...]', description: 'after `--`: what to run there' }],
  options: [{ flags: '-i, --identity <file>', description: 'private key', complete: 'file' }],
  examples: [
    'slipway vm ssh train-7',
    'slipway vm ssh train-7 -- nvidia-smi',
    'slipway vm ssh train-7 -i ~/.ssh/work',
  ],
  async run(cli, { ref, command, identity }) {
    const vm = await cli.client.vmGet({ project_id: await cli.project(), vm_id: await idOf(cli, vms, ref) })
    const destination = sshDestination(vm)
    if (!destination) {
      const state = vm.state.replace('STATE_', '').toLowerCase()
      const reason = vm.state === 'STATE_RUNNING' ? 'it has no public address' : `it is ${state}`
      throw new CliError('conflict', `${vm.name} cannot be reached by SSH: ${reason}.`, exitCodes.conflict)
    }
    const options = [...hostKeyRules(vm), ['ConnectTimeout', '15']]
    const rules = options.flatMap(([option, value]) => ['-o', `${option}=${value}`])
    const key = identity ? ['-i', identity] : []
    process.exitCode = await runToEnd('ssh', [...rules, ...key, ...sshArguments(destination), ...command])
  },
})

/** The child has the terminal until it ends; the exit code after a signal is the one that shells use. */
function runToEnd(program: string, words: string[]): Promise<number> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, words, { stdio: 'inherit' })
    // Ctrl-C is for the remote side.
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
  })
}

import { command } from '../../core/command.ts'
import { UsageError } from '../../errors/cli-error.ts'
import { identityOption, reachableVm, runToEnd, sshOptions } from './ssh-program.ts'

interface ScpInput {
  paths: string[]
  identity?: string
  recursive?: boolean
}

/** Matches `train-7:results`, but not `./a:b`, `/a:b` or a drive letter. */
const remotePath = /^([A-Za-z0-9][\w-]+):(.*)$/

export const vmScp = command<ScpInput>({
  name: 'scp',
  summary: 'copy files to or from a VM',
  details: "Runs the system's scp. Write paths on the VM as NAME:PATH. All of them must be on the same VM.",
  arguments: [{ syntax: '<paths...>', description: 'source paths, then the destination', complete: 'vm' }],
  options: [identityOption, { flags: '-r, --recursive', description: 'copy directories recursively' }],
  examples: [
    'slipway vm scp train.py train-7:',
    'slipway vm scp train-7:results/model.pt .',
    'slipway vm scp -r data train-7:/mnt/data',
  ],
  async run(cli, { paths, identity, recursive }) {
    const names = new Set(paths.flatMap((path) => remotePath.exec(path)?.[1] ?? []))
    const [name] = names
    if (paths.length < 2 || name === undefined || names.size > 1) {
      throw new UsageError('Expected source paths and a destination, and exactly one VM among them.', [
        'For example: slipway vm scp train.py train-7:',
      ])
    }
    const { vm, destination } = await reachableVm(cli, name)
    const { user, host, port } = destination
    const operands = paths.map((path) => path.replace(remotePath, `${user}@${host}:$2`))
    const words = [...sshOptions(cli, vm, identity), '-P', String(port), ...(recursive ? ['-r'] : [])]
    cli.exitCode = await runToEnd(cli, 'scp', [...words, '--', ...operands])
  },
})

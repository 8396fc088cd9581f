import { type AnyCommand, command } from '../../../core/command.ts'
import { printOne } from '../../../output/print.ts'

function stateCommand(name: string, state: 'free' | 'quarantined', summary: string): AnyCommand {
  return command<{ gpu: string }>({
    name,
    summary,
    arguments: [{ syntax: '<gpu>', description: 'id of the GPU' }],
    examples: [`slipway admin gpu ${name} 0199c6f2-9a1e-7c4b-8f51-6a2f0c1d7e10`],
    async run(cli, { gpu }) {
      await printOne(cli, await cli.operator.adminGpuUpdate({ gpu_id: gpu }, { state }))
    },
  })
}

export const adminGpuQuarantine = stateCommand('quarantine', 'quarantined', 'put a GPU into quarantine')
export const adminGpuFree = stateCommand('free', 'free', 'release a quarantined GPU')

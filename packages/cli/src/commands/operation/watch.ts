import { command } from '../../core/command.ts'
import { print } from '../../output/print.ts'
import { words } from '../../output/text.ts'
import { operationArgument, operations } from './resource.ts'

export const operationWatch = command<{ operation: string }>({
  name: 'watch',
  summary: 'print the steps of an operation as they start and end',
  arguments: [operationArgument],
  examples: [`slipway operation watch ${operations.example}`],
  async run(cli, input) {
    const seen = new Map<string, string>()
    const { state } = await cli.client.wait({ project_id: await cli.project() }, input.operation, {
      onProgress: ({ steps }) => {
        for (const step of steps) {
          if (step.state === 'pending' || seen.get(step.name) === step.state) continue
          seen.set(step.name, step.state)
          if (cli.format.kind === 'json') print(cli, JSON.stringify(step))
          else print(cli, `${step.completed_at || step.started_at}  ${words(step.name)}  ${step.state}`)
        }
      },
    })
    if (cli.format.kind === 'table') print(cli, state)
  },
})

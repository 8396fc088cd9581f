import { command } from '../../core/command.ts'
import { print, printList, printOne } from '../../output/print.ts'
import { words } from '../../output/text.ts'
import { operationArgument, operations } from './resource.ts'

export const operationShow = command<{ operation: string }>({
  name: 'show',
  summary: 'show an operation and its steps',
  arguments: [operationArgument],
  examples: [`slipway operation show ${operations.example}`],
  async run(cli, input) {
    const target = { project_id: await cli.project(), operation_id: input.operation }
    const found = await cli.client.operationGet(target)
    await printOne(cli, found)
    if (cli.format.kind !== 'table' || cli.format.columns) return
    const { items } = await cli.client.operationSteps(target)
    print(cli, '')
    await printList(
      cli,
      items,
      [
        { name: 'step', value: (step) => words(step.name) },
        { name: 'state', value: (step) => step.state, isState: true },
        { name: 'started', value: (step) => step.started_at },
        { name: 'completed', value: (step) => step.completed_at },
      ],
      'operationSteps',
    )
  },
})

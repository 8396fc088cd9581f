import { command } from '../../core/command.ts'
import { printOne } from '../../output/print.ts'
import { operationArgument, operations, printSteps } from './resource.ts'

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
    await printSteps(cli, (await cli.client.operationSteps(target)).items)
  },
})

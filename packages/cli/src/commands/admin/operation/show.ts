import { command } from '../../../core/command.ts'
import { printOne } from '../../../output/print.ts'
import { operations, printSteps } from '../../operation/resource.ts'

export const adminOperationShow = command<{ operation: string }>({
  name: 'show',
  summary: 'show an operation with its steps, attempts and last error',
  arguments: [{ syntax: '<operation>', description: 'id of the operation' }],
  examples: [`slipway admin operation show ${operations.example}`],
  async run(cli, { operation }) {
    const found = await cli.operator.adminOperationGet({ operation_id: operation })
    if (cli.format.kind !== 'table' || cli.format.columns) return printOne(cli, found)
    const { steps, ...fields } = found
    await printOne(cli, fields)
    await printSteps(cli, steps)
  },
})

import { command } from '../../../core/command.ts'
import { printOne } from '../../../output/print.ts'
import { operations } from '../../operation/resource.ts'

export const adminOperationRetry = command<{ operation: string }>({
  name: 'retry',
  summary: 'retry a stuck operation',
  arguments: [{ syntax: '<operation>', description: 'id of the operation' }],
  examples: [`slipway admin operation retry ${operations.example}`],
  async run(cli, { operation }) {
    await printOne(cli, await cli.operator.adminOperationRetry({ operation_id: operation }))
  },
})

import { confirmLoss } from '../../../core/ask.ts'
import { command } from '../../../core/command.ts'
import { printOne } from '../../../output/print.ts'
import { operations } from '../../operation/resource.ts'

export const adminOperationAbandon = command<{ operation: string; yes?: boolean }>({
  name: 'abandon',
  summary: 'abandon a stuck operation and mark it as failed',
  arguments: [{ syntax: '<operation>', description: 'id of the operation' }],
  options: [{ flags: '-y, --yes', description: 'skip the confirmation' }],
  examples: [`slipway admin operation abandon ${operations.example} --yes`],
  async run(cli, { operation, yes }) {
    await confirmLoss(
      cli,
      `Abandon ${operation}? It will be marked as failed. You must remove resources that the service cannot remove.`,
      yes,
    )
    await printOne(cli, await cli.operator.adminOperationAbandon({ operation_id: operation }))
  },
})

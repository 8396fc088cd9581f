import type { Operation, RouteAnswer } from '@slipway/sdk'
import { confirmLoss } from '../../../core/ask.ts'
import { type AnyCommand, command, type GroupSpec } from '../../../core/command.ts'
import { printList, printOne } from '../../../output/print.ts'
import { ageOf } from '../../../output/text.ts'

type AdminOperation = RouteAnswer<'adminOperationRetry'>
const argument = { syntax: '<operation>', description: 'id of the operation' }
const exampleId = '0199c6f2-9a1e-7c4b-8f51-6a2f0c1d7e10'

export const adminOperation: GroupSpec = {
  name: 'operation',
  summary: 'operations of all tenants',
  commands: [
    command<{ stuck?: boolean; state?: string }>({
      name: 'list',
      summary: 'list operations',
      options: [
        { flags: '--stuck', description: 'only those that need a person' },
        {
          flags: '--state <state>',
          description: 'in_progress, succeeded or failed',
          complete: ['in_progress', 'succeeded', 'failed'],
        },
      ],
      examples: [
        'slipway admin operation list --stuck',
        'slipway admin operation list --state in_progress -o json',
      ],
      async run(cli, { stuck, state }) {
        const filter = { stuck, state: state?.toUpperCase() as Operation['state'] | undefined }
        await printList<AdminOperation>(cli, await cli.operator.collect('adminOperationList', filter), [
          { name: 'id', value: (operation) => operation.operation_id },
          { name: 'operation', value: (operation) => operation.metadata.operation_name.toLowerCase() },
          { name: 'type', value: (operation) => operation.metadata.type },
          {
            name: 'state',
            value: (operation) => (operation.is_stuck ? 'stuck' : operation.state),
            isState: true,
          },
          { name: 'step', value: (operation) => operation.step, spare: 2 },
          { name: 'attempts', value: (operation) => operation.attempts, align: 'right', spare: 3 },
          { name: 'error', value: (operation) => operation.error, spare: 1 },
          { name: 'age', value: (operation) => ageOf(operation.started_at), align: 'right', spare: 4 },
        ])
      },
    }),
    command<{ operation: string }>({
      name: 'retry',
      summary: 'try a stuck operation again',
      arguments: [argument],
      examples: [`slipway admin operation retry ${exampleId}`],
      async run(cli, { operation }) {
        await printOne(cli, await cli.operator.adminOperationRetry({ operation_id: operation }))
      },
    }),
    abandonCommand(),
  ],
}

function abandonCommand(): AnyCommand {
  return command<{ operation: string; yes?: boolean }>({
    name: 'abandon',
    summary: 'give a stuck operation up; what it could not undo stays',
    arguments: [argument],
    options: [{ flags: '-y, --yes', description: 'do not ask' }],
    examples: [`slipway admin operation abandon ${exampleId} --yes`],
    async run(cli, { operation, yes }) {
      await confirmLoss(cli, `Give ${operation} up? What it could not undo is left to you.`, yes)
      await printOne(cli, await cli.operator.adminOperationAbandon({ operation_id: operation }))
    },
  })
}

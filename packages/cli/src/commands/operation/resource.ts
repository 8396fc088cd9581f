import { type Operation, type OperationStep, operationStates } from '@slipway/sdk'
import type { Cli } from '../../core/cli.ts'
import { type ArgumentSpec, type OptionSpec, oneOf } from '../../core/command.ts'
import type { Resource } from '../../core/resource.ts'
import { print, printList } from '../../output/print.ts'
import { ageOf, words } from '../../output/text.ts'

export const operations: Resource<Operation> = {
  noun: 'operation',
  example: '0199c6f2-9a1e-7c4b-8f51-6a2f0c1d7e10',
  title: 'operation',
  columns: [
    { name: 'id', value: (operation) => operation.operation_id },
    { name: 'operation', value: (operation) => operation.metadata.operation_name.toLowerCase() },
    { name: 'type', value: (operation) => operation.metadata.type },
    { name: 'state', value: (operation) => operation.state, isState: true },
    { name: 'resource', value: (operation) => operation.metadata.id, hideOrder: 1 },
    { name: 'resource_id', value: (operation) => operation.metadata.id, isExtra: true },
    { name: 'age', value: (operation) => ageOf(operation.started_at), align: 'right', hideOrder: 2 },
  ],
  route: 'operationList',
  list: async (cli) => cli.client.collect('operationList', { project_id: await cli.project() }),
  named: (operation) => ({ id: operation.operation_id, name: operation.operation_id }),
}

/** Prints the steps of an operation below its fields. */
export async function printSteps(cli: Cli, steps: OperationStep[]): Promise<void> {
  print(cli, '')
  await printList(
    cli,
    steps,
    [
      { name: 'step', value: (step) => words(step.name) },
      { name: 'state', value: (step) => step.state, isState: true },
      { name: 'started', value: (step) => step.started_at },
      { name: 'completed', value: (step) => step.completed_at },
    ],
    'operationSteps',
  )
}

export const operationArgument: ArgumentSpec = {
  syntax: '<operation>',
  description: 'id of the operation',
  complete: 'operation',
}

export const stateOption: OptionSpec = {
  flags: '--state <state>',
  ...oneOf(operationStates.map((state) => state.toLowerCase())),
}

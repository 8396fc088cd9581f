import type { ListItem, OperationState } from '@slipway/sdk'
import { command } from '../../../core/command.ts'
import { type Column, printList } from '../../../output/print.ts'
import { ageOf } from '../../../output/text.ts'
import { stateOption } from '../../operation/resource.ts'

const columns: Column<ListItem<'adminOperationList'>>[] = [
  { name: 'id', value: (operation) => operation.operation_id },
  { name: 'operation', value: (operation) => operation.metadata.operation_name.toLowerCase() },
  { name: 'type', value: (operation) => operation.metadata.type },
  { name: 'name', value: (operation) => operation.resource_name },
  {
    name: 'state',
    value: (operation) => (operation.is_stuck ? 'stuck' : operation.state),
    isState: true,
  },
  { name: 'step', value: (operation) => operation.step, hideOrder: 2 },
  { name: 'attempts', value: (operation) => operation.attempts, align: 'right', hideOrder: 3 },
  { name: 'error', value: (operation) => operation.error, hideOrder: 1 },
  { name: 'age', value: (operation) => ageOf(operation.started_at), align: 'right', hideOrder: 4 },
]

export const adminOperationList = command<{ stuck?: boolean; state?: string }>({
  name: 'list',
  summary: 'list operations',
  options: [{ flags: '--stuck', description: 'only operations that need an operator' }, stateOption],
  columns,
  examples: [
    'slipway admin operation list --stuck',
    'slipway admin operation list --state in_progress -o json',
  ],
  async run(cli, { stuck, state }) {
    const filter = { stuck, state: state?.toUpperCase() as OperationState | undefined }
    await printList(
      cli,
      await cli.operator.collect('adminOperationList', filter),
      columns,
      'adminOperationList',
    )
  },
})

import { eventTypes } from '@slipway/contract/event-types'
import { command } from '../../core/command.ts'
import { printList } from '../../output/print.ts'
import { auditColumns, type Limit, limitOption, newestEvents, periodOptions } from '../events/resource.ts'

export const adminEvents = command<{ limit: Limit; type?: string; start?: string; end?: string }>({
  name: 'events',
  summary: 'show the audit log of all tenants and operators',
  options: [
    limitOption,
    { flags: '--type <type>', description: 'only events of this type', values: eventTypes },
    ...periodOptions,
  ],
  columns: auditColumns,
  examples: ['slipway admin events', 'slipway admin events --type host.drained -o json'],
  async run(cli, { limit, type, start, end }) {
    const rows = await newestEvents(limit, (pageSize) =>
      cli.operator.each('adminEventList', { type, start, end, limit: pageSize }),
    )
    await printList(cli, rows, auditColumns, 'adminEventList')
  },
})

import type { DevRequest } from '@slipway/contract'
import { command } from '../../core/command.ts'
import { parseNumber } from '../../core/parse.ts'
import { type Column, printList } from '../../output/print.ts'

const columns: Column<DevRequest>[] = [
  { name: 'position', value: (request) => request.position, align: 'right' },
  { name: 'at', value: (request) => request.at, hideOrder: 1 },
  { name: 'method', value: (request) => request.method },
  { name: 'status', value: (request) => request.status, align: 'right' },
  { name: 'route', value: (request) => request.route },
  { name: 'path', value: (request) => request.path, hideOrder: 2 },
]

export const devRequests = command<{ after?: number }>({
  name: 'requests',
  summary: 'list the latest requests of clients, without credentials and secrets',
  options: [
    { flags: '--after <position>', description: 'only requests after this position', parse: parseNumber },
  ],
  columns,
  examples: ['slipway dev requests', 'slipway dev requests --after 120 -o json'],
  async run(cli, query) {
    const members: (keyof DevRequest)[] = [
      'position',
      'at',
      'method',
      'path',
      'route',
      'headers',
      'body',
      'status',
    ]
    await printList(cli, await cli.levers.requests(query), columns, members)
  },
})

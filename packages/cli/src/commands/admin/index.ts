import type { Event } from '@slipway/sdk'
import { command, type GroupSpec } from '../../core/command.ts'
import { parseNumber } from '../../core/parse.ts'
import { printList } from '../../output/print.ts'
import { eventColumns } from '../events/index.ts'
import { adminGpu, adminHost } from './host/index.ts'
import { adminImage, adminLocation, adminPrice } from './image/index.ts'
import { adminOperation } from './operation/index.ts'
import { adminOrg, adminProject, adminQuota, adminUser } from './org/index.ts'

/** The operator's side. Needs an operator key (SLIPWAY_OPERATOR_KEY) or the login of an operator. */
export const admin: GroupSpec = {
  name: 'admin',
  summary: 'for those who run the service',
  commands: [
    adminHost,
    adminGpu,
    command({
      name: 'capacity',
      summary: 'GPUs by location and family',
      examples: ['slipway admin capacity', 'slipway admin capacity -o json'],
      async run(cli) {
        await printList(cli, await cli.operator.collect('adminCapacityList', {}), [
          { name: 'location', value: (row) => row.location },
          { name: 'family', value: (row) => row.family },
          { name: 'total', value: (row) => row.total, align: 'right' },
          { name: 'free', value: (row) => row.free, align: 'right' },
          { name: 'claimed', value: (row) => row.claimed, align: 'right' },
          { name: 'quarantined', value: (row) => row.quarantined, align: 'right' },
          { name: 'largest_type', value: (row) => row.largest_type },
        ])
      },
    }),
    adminOrg,
    adminProject,
    adminUser,
    adminQuota,
    adminImage,
    adminLocation,
    adminPrice,
    adminOperation,
    command<{ limit: number; type?: string }>({
      name: 'events',
      summary: 'the audit log of all tenants and operators',
      options: [
        {
          flags: '--limit <count>',
          description: 'how many of the newest',
          default: '20',
          parse: parseNumber,
        },
        { flags: '--type <type>', description: 'one type' },
      ],
      examples: ['slipway admin events', 'slipway admin events --type host.drained -o json'],
      async run(cli, { limit, type }) {
        const rows: Event[] = []
        for await (const event of cli.operator.each('adminEventList', {
          type,
          limit: Math.min(500, Number(limit)),
        })) {
          rows.push(event)
          if (rows.length >= Number(limit)) break
        }
        await printList(cli, rows, eventColumns)
      },
    }),
  ],
}

import { eventTypes } from '@slipway/contract/event-types'
import { command } from '../../core/command.ts'
import { printList } from '../../output/print.ts'
import { auditColumns, type Limit, limitOption, newestEvents, periodOptions } from '../events/resource.ts'

export const orgEvents = command<{ ref?: string; limit: Limit; type?: string; start?: string; end?: string }>(
  {
    name: 'events',
    summary: 'show the audit log: changes to members, keys and billing, and failed sign-ins',
    details:
      'Shows events that do not belong to a project. Requires the role admin or owner. For events of a project, use `slipway events`.',
    arguments: [
      {
        syntax: '[organization]',
        key: 'ref',
        description: 'name or id of the organization',
        complete: 'org',
      },
    ],
    options: [
      limitOption,
      { flags: '--type <type>', description: 'only events of this type', values: eventTypes },
      ...periodOptions,
    ],
    columns: auditColumns,
    examples: ['slipway org events', 'slipway org events harbour-labs --type user.sign_in_failed'],
    async run(cli, { ref, limit, type, start, end }) {
      const organization_id = await cli.organization(ref)
      const rows = await newestEvents(limit, (pageSize) =>
        cli.client.each('organizationEventList', { organization_id, type, start, end, limit: pageSize }),
      )
      await printList(cli, rows, auditColumns, 'organizationEventList')
    },
  },
)

import type { Queryable } from '../../postgres/database.ts'
import { isLeaseOver } from '../../postgres/leases.ts'
import { statement } from '../../postgres/statement.ts'
import { endedHolders } from '../capacity/operation-holds.ts'
import { dueQueuesSql } from '../capacity/queues.ts'
import { claimable } from '../compute/operation-leases.ts'
import { expired, expiring } from '../compute/vm-expiry.ts'
import { selectVmsToStop } from '../compute/vm-list.ts'
import { isFirewallDue } from '../network/firewall-queue.ts'
import { unservedLocations } from './locations.ts'
import { maintenanceDue } from './maintenance.ts'

const eventsAfter = (position: string) => `(SELECT last_position FROM event_counter) > ${position}`
/** PostgreSQL ignores LIMIT and ORDER BY in an EXISTS, and may then read the whole table. */
const found = (rows: string) => `(SELECT count(*) FROM (${rows} LIMIT 1) AS first) > 0`

/**
 * For each kind of work, a condition that is true if such work is due. Each condition finds its first row
 * with an index.
 */
const conditions = {
  operations: found(`SELECT FROM operation_queue WHERE ${claimable} ORDER BY run_at`),
  events: found('SELECT FROM events_pending'),
  // True if there are events without deliveries, or deliveries that are due.
  webhooks: `${eventsAfter('(SELECT position FROM webhook_fan_out)')} AND ${found('SELECT FROM webhooks ORDER BY since_position')}
    OR ${found('SELECT FROM webhooks WHERE NOT is_slow AND due_at <= slipway_now() ORDER BY due_at')}
    OR ${found('SELECT FROM webhooks WHERE is_slow AND due_at <= slipway_now() ORDER BY due_at')}`,
  mails: found('SELECT FROM mails WHERE next_attempt_at <= slipway_now() ORDER BY next_attempt_at'),
  // The cursor has no position until mail is configured for the first time.
  notices: eventsAfter('(SELECT coalesce(position, -1) FROM mail_cursor)'),
  expiry: `${found(expired)} OR ${found(expiring)}`,
  suspension: found(selectVmsToStop),
  maintenance: found(maintenanceDue),
  firewalls: `EXISTS (SELECT FROM unnest(:locations::text[]) l (name)
                      WHERE (SELECT true FROM vms v WHERE v.location = l.name AND ${isFirewallDue} LIMIT 1))
    OR ${found('SELECT FROM held_addresses')}`,
  hosts: `${found(`SELECT FROM hosts WHERE state = 'down' AND forgotten_at IS NULL`)}
    OR ${found(`SELECT FROM hosts WHERE state = 'draining'`)} OR ${found(unservedLocations)}`,
  capacity: `${found('SELECT FROM capacity_requests WHERE due_at <= slipway_now() ORDER BY due_at')}
    OR ${found(dueQueuesSql)} OR ${found('SELECT FROM reservations WHERE due_at <= slipway_now() ORDER BY due_at')}
    OR ${found(endedHolders)}`,
  gpus: found(`SELECT FROM gpus WHERE state = 'quarantined' AND NOT is_held_back ORDER BY quarantined_at`),
}

export type WorkKind = keyof typeof conditions
export type DueWork = Record<WorkKind, boolean> & { isBusy: boolean; turns: string[] }

interface Params {
  locations: string[]
  turns: string[]
  restsMs: number[]
}

// One statement covers all kinds of work, so that an idle process makes one commit for each poll.
const find = statement<DueWork, Params>(
  'due_work',
  `WITH found AS MATERIALIZED (
     SELECT ${Object.entries(conditions)
       .map(([kind, condition]) => `(${condition}) AS ${kind}`)
       .join(',\n            ')})
   SELECT found.*, ${found('SELECT FROM operation_queue ORDER BY run_at')} AS "isBusy",
          ARRAY(SELECT t.name FROM unnest(:turns::text[], :restsMs::float8[]) AS t (name, rest_ms)
                LEFT JOIN leases l USING (name)
                WHERE l.name IS NULL OR ${isLeaseOver(
                  `CASE WHEN found.hosts OR found.gpus THEN 0 ELSE t.rest_ms END * interval '1 millisecond'`,
                )}) AS turns
   FROM found`,
)

export const findDueWork = async (db: Queryable, params: Params): Promise<DueWork> =>
  (await find.one(db, params))!

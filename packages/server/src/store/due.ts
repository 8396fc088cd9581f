import { claimable } from './compute/operation-leases.ts'
import { expired, expiring } from './compute/vm-expiry.ts'
import { suspendedRunning } from './compute/vm-list.ts'
import type { Database } from './database.ts'
import { unservedLocations } from './fleet/locations.ts'
import { isLeaseOver } from './leases.ts'
import { isFirewallDue } from './network/firewall-queue.ts'
import { statement } from './statement.ts'

/** How often the store is asked for due work. */
const busyMs = 1_000
/** The same while no operation is unfinished and nothing was due. */
const quietMs = 2_000

const eventsAfter = (position: string) => `(SELECT last_position FROM event_counter) > ${position}`
/** PostgreSQL leaves out LIMIT and ORDER BY of an EXISTS when it plans, and may then read the whole table. */
const found = (rows: string) => `(SELECT count(*) FROM (${rows} LIMIT 1) AS first) > 0`

/** Whether there is work of each kind. Every condition finds its first row by an index. */
const conditions = {
  operations: found(`SELECT FROM operation_queue WHERE ${claimable} ORDER BY run_at`),
  events: found('SELECT FROM events_pending'),
  // Events that have no deliveries yet, or deliveries that are due.
  webhooks: `${eventsAfter('(SELECT position FROM webhook_fan_out)')} AND ${found('SELECT FROM webhooks ORDER BY since_position')}
    OR ${found('SELECT FROM webhooks WHERE NOT is_slow AND due_at <= slipway_now() ORDER BY due_at')}
    OR ${found('SELECT FROM webhooks WHERE is_slow AND due_at <= slipway_now() ORDER BY due_at')}`,
  mails: found('SELECT FROM mails WHERE next_attempt_at <= slipway_now() ORDER BY next_attempt_at'),
  // The cursor has no position until mail is configured for the first time.
  notices: eventsAfter('(SELECT coalesce(position, -1) FROM mail_cursor)'),
  expiry: `${found(expired)} OR ${found(expiring)}`,
  suspension: found(suspendedRunning),
  firewalls: `EXISTS (SELECT FROM unnest(:locations::text[]) l (name)
                      WHERE (SELECT true FROM vms v WHERE v.location = l.name AND ${isFirewallDue} LIMIT 1))
    OR ${found('SELECT FROM held_addresses')}`,
  hosts: `${found(`SELECT FROM hosts WHERE state = 'down' AND forgotten_at IS NULL`)}
    OR ${found(`SELECT FROM hosts WHERE state = 'draining'`)} OR ${found(unservedLocations)}`,
  gpus: found(`SELECT FROM gpus WHERE state = 'quarantined' AND NOT is_held_back ORDER BY quarantined_at`),
}

export type WorkKind = keyof typeof conditions
type Found = Record<WorkKind, boolean> & { isBusy: boolean; turns: string[] }

/** When a task is due: when there is work of this kind, and when the turn is free that processes share it by. */
export interface DueTask {
  kind?: WorkKind
  /** The name of the turn's lease. */
  turn?: string
  /** How long the turn rests after its lease ran out, as long as no host and no GPU needs attention. */
  restMs?: number
  /** It is not told again sooner, by this process's own clock. */
  everyMs?: number
}

interface Params {
  locations: string[]
  turns: string[]
  restsMs: number[]
}

// One statement for all kinds of work: a process at rest makes one commit for each look.
const find = statement<Found, Params>(
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

interface Entry extends DueTask {
  tell: () => void
  toldAt: number
}

const isDue = ({ kind, turn, everyMs = 0, toldAt }: Entry, found: Found): boolean =>
  (kind === undefined || found[kind]) &&
  (turn === undefined || found.turns.includes(turn)) &&
  performance.now() - toldAt >= everyMs

/**
 * Finds out what there is to do: one statement a second or two tells all parts of a process. Most work begins sooner, by a
 * signal; this is for what becomes due by time, and for signals that were lost. It looks as long as it has listeners.
 */
export class DueWork {
  readonly #database: Database
  readonly #locations: string[]
  readonly #onError: (error: unknown) => void
  readonly #entries = new Set<Entry>()
  #timer: NodeJS.Timeout | undefined

  /** `locations` are those that this process has engines for. */
  constructor(database: Database, locations: string[], onError: (error: unknown) => void) {
    this.#database = database
    // Operations that need no engine have the location ''.
    this.#locations = ['', ...locations]
    this.#onError = onError
  }

  /** Calls `tell` at every look that finds the task due, for the first time without its rest. Returns what ends it. */
  on(task: DueTask, tell: () => void): () => void {
    const entry = { ...task, tell, toldAt: Number.NEGATIVE_INFINITY }
    this.#entries.add(entry)
    this.#timer ??= setTimeout(() => this.#look(), 0).unref()
    return () => this.#entries.delete(entry)
  }

  async #look(): Promise<void> {
    let pauseMs = busyMs
    try {
      const found = await this.#find()
      const due = [...this.#entries].filter((entry) => isDue(entry, found))
      for (const entry of due) {
        entry.toldAt = performance.now()
        entry.tell()
      }
      if (due.length === 0 && !found.isBusy) pauseMs = quietMs
    } catch (error) {
      if (this.#entries.size > 0) this.#onError(error)
    }
    // Processes that began together do not look at the same moments for long.
    const jitter = 0.75 + Math.random() / 2
    this.#timer =
      this.#entries.size > 0 ? setTimeout(() => this.#look(), pauseMs * jitter).unref() : undefined
  }

  async #find(): Promise<Found> {
    const turns = [...this.#entries].flatMap(({ turn, restMs = 0, toldAt }) =>
      turn === undefined ? [] : [{ name: turn, restMs: Number.isFinite(toldAt) ? restMs : 0 }],
    )
    const row = await find.one(this.#database, {
      locations: this.#locations,
      turns: turns.map(({ name }) => name),
      restsMs: turns.map(({ restMs }) => restMs),
    })
    return row!
  }
}

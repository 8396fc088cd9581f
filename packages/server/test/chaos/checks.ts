import { brokenInvariants } from '@slipway/testing/invariants.ts'
import type { Cluster } from './cluster.ts'
import type { EventRow, Evidence } from './evidence.ts'
import { groupBy } from './group-by.ts'
import { checkExchanges, checkStream } from './history-checks.ts'
import { checkCosts, checkMeters } from './usage-checks.ts'

/** Compares the final state with what the service promised. Each difference is a violation. */
export async function checkAll(evidence: Evidence): Promise<void> {
  const { cluster, history } = evidence
  await checkOperations(evidence)
  const { database } = cluster
  const sql: Cluster['sql'] = (text, values) => cluster.sql(text, values)
  for (const broken of await brokenInvariants({ database, sql })) history.violation(broken)
  const events = await cluster.sql<EventRow>(
    `SELECT id, position, type, resource_id, data ->> 'operation_id' AS operation_id,
            (extract(epoch FROM created_at) * 1000)::float8 AS created_ms
     FROM events_written WHERE project_id = $1 ORDER BY position`,
    [evidence.projectId],
  )
  await checkEvents(evidence, events)
  await checkQueues(evidence)
  await checkMeters(evidence, events)
  await checkCosts(evidence)
  checkDeliveries(evidence, events)
}

/** An operation may fail only because it was cancelled, its guest crashed or an engine was set to reject calls. */
const isExpectedFailure = ({ code, message }: { code: string; message: string }) =>
  code === 'cancelled' || code === 'boot_failed' || (code === 'engine_error' && /is rejected/.test(message))

async function checkOperations({ cluster, history }: Evidence): Promise<void> {
  const rows = await cluster.sql<{
    id: string
    kind: string
    state: string
    request_id: string
    resource_id: string
    result: { code: string; message: string } | null
    is_one_of_many: boolean
  }>(
    // One request can change many members of a group, and a capacity request whose VM does not boot is granted
    // again.
    `SELECT id, kind, state, request_id, resource_id, result,
            resource_type <> 'instance_group' AND EXISTS (
              SELECT FROM operations g WHERE g.request_id = o.request_id AND g.resource_type = 'instance_group')
            OR EXISTS (SELECT FROM capacity_requests r WHERE r.request_id = o.request_id) AS is_one_of_many
     FROM operations o`,
  )
  const operations = rows.map(({ id, request_id, state }) => ({ id, key: request_id, state }))
  for (const broken of checkExchanges(history.exchanges, operations)) history.violation(broken)
  const keys = new Set<string>()
  for (const { id, kind, state, request_id, resource_id, result, is_one_of_many } of rows) {
    if (keys.has(request_id) && !is_one_of_many)
      history.violation(`${request_id} started more than one operation, including ${id}`)
    if (!is_one_of_many) keys.add(request_id)
    if (state === 'FAILED' && !isExpectedFailure(result!))
      history.violation(`${kind} ${id} of ${resource_id} failed: ${JSON.stringify(result)}`)
  }
}

/** Checks that no request for a single VM waits while GPUs that it could use are free. */
async function checkQueues({ cluster, history }: Evidence): Promise<void> {
  const forgotten = await cluster.sql<{ request_id: string; host: string }>(
    `SELECT DISTINCT ON (p.request_id) p.request_id, h.name AS host
     FROM capacity_places p JOIN hosts h ON h.location = p.location AND h.family = p.family AND h.is_schedulable
       AND h.state = 'up' AND h.free_gpus >= p.gpus AND coalesce(h.id = p.host_id, true)
     WHERE p.is_open AND p.vms = 1`,
  )
  for (const { request_id, host } of forgotten)
    history.violation(`the request ${request_id} waits, although ${host} has free GPUs for it`)
}

async function checkEvents({ cluster, history, streamedIds, fromPosition }: Evidence, events: EventRow[]) {
  const [gaps] = await cluster.sql<{ count: number }>(
    `SELECT (SELECT last_position FROM event_counter) - count(DISTINCT position) AS count FROM events_written`,
  )
  if (Number(gaps!.count) !== 0) history.violation(`${gaps!.count} positions have no event`)
  const disordered = await cluster.sql<{ resource_id: string }>(
    `SELECT DISTINCT resource_id FROM (
       SELECT resource_id, position - lag(position) OVER (PARTITION BY resource_id ORDER BY seq) AS step FROM events_written) e
     WHERE step < 0`,
  )
  for (const { resource_id } of disordered) history.violation(`the events of ${resource_id} are out of order`)

  const endings = ['operation.succeeded', 'operation.failed']
  const operations = await cluster.sql<{ id: string; state: string }>('SELECT id, state FROM operations')
  const eventsById = groupBy(events, ({ operation_id }) => operation_id)
  for (const { id, state } of operations) {
    const about = eventsById.get(id) ?? []
    const ends = about.filter(({ type }) => endings.includes(type))
    if (ends.length !== 1 || ends[0]!.type !== `operation.${state.toLowerCase()}`)
      history.violation(
        `${id} is ${state}, but its events say ${ends.map(({ type }) => type).join(', ') || 'nothing'}`,
      )
    if (about.length > 0 && endings.includes(about[0]!.type))
      history.violation(`the first event of ${id} is its end`)
  }
  const expected = events.filter(({ position }) => position > fromPosition).map(({ id }) => id)
  for (const broken of checkStream(expected, streamedIds)) history.violation(broken)
}

/** Checks that every event was delivered at least once, and the events of each resource in order. */
function checkDeliveries({ history, receiver, fromPosition }: Evidence, events: EventRow[]): void {
  const arrived = [...new Set(receiver.received.map(({ body }) => body.data.id))]
  const expected = events.filter(({ position }) => position > fromPosition)
  const missing = expected.filter(({ id }) => !arrived.includes(id))
  if (missing.length > 0)
    history.violation(
      `${missing.length} of ${expected.length} webhooks never arrived: ${missing.map(({ id }) => id).slice(0, 5)}`,
    )
  const order = new Map(arrived.map((id, index) => [id, index]))
  for (const [resourceId, all] of groupBy(expected, ({ resource_id }) => resource_id)) {
    const places = all.map(({ id }) => order.get(id) ?? -1)
    if (places.some((place, i) => i > 0 && place < places[i - 1]!))
      history.violation(`the webhooks about ${resourceId} arrived out of order`)
  }
}

import { setTimeout as delay } from 'node:timers/promises'
import { clockOf } from '@slipway/testing/postgres/clock.ts'
import type { Cluster } from './cluster.ts'

const checkIntervalMs = 200
const patienceMs = 120_000

/** Selects the work that is still pending; no rows when the service has settled. */
const pendingWork = `
  SELECT * FROM (VALUES
    ('operations in progress', (SELECT string_agg(concat_ws(' ', kind, id, 'of', resource_id, 'at step', step, last_error), '; ')
       FROM operations WHERE state = 'IN_PROGRESS')),
    ('hosts that are down', (SELECT string_agg(location || '/' || name, ', ') FROM hosts WHERE state <> 'up')),
    ('unreachable or deleted VMs', (SELECT string_agg(id::text, ', ') FROM vms
       WHERE state = 'STATE_UNREACHABLE' OR deleted_at IS NOT NULL)),
    ('crashed VMs that are recorded as running', (SELECT string_agg(v.id::text, ', ') FROM vms v
       JOIN simulated_vms s USING (id) WHERE v.state = 'STATE_RUNNING' AND s.power = 'crashed')),
    ('firewalls that are not applied', (SELECT string_agg(id::text, ', ') FROM vms
       WHERE firewall_applied < firewall_wanted AND deleted_at IS NULL)),
    ('capacity requests that are due', (SELECT string_agg(id::text, ', ') FROM capacity_requests WHERE due_at <= slipway_now())),
    ('queues that are due', (SELECT string_agg(location, ', ') FROM capacity_lanes WHERE due_at <= slipway_now())),
    ('GPUs in quarantine', (SELECT string_agg(id::text, ', ') FROM gpus WHERE state = 'quarantined')),
    ('events without position', (SELECT count(*)::text FROM events_pending HAVING count(*) > 0)),
    ('events without deliveries', (SELECT (last_position - position)::text FROM event_counter, webhook_fan_out
       WHERE last_position > position)),
    ('pending webhook deliveries', (SELECT count(*)::text FROM webhook_deliveries WHERE state = 'pending' HAVING count(*) > 0))
  ) AS pending (what, which) WHERE which IS NOT NULL`

/**
 * Waits until nothing is pending, and returns the work that is still pending at the end. Moves the clock past pauses
 * between attempts, but never during a worker's lease, and slowly enough that hosts do not seem to be down.
 */
export async function untilQuiet(cluster: Cluster): Promise<string[]> {
  const until = performance.now() + patienceMs
  const clock = clockOf((text, values) => cluster.sql(text, values))
  for (;;) {
    const left = await cluster.sql<{ what: string; which: string }>(pendingWork)
    if (left.length === 0) return []
    if (performance.now() > until) return left.map(({ what, which }) => `${what}: ${which}`)
    await clock.advanceUnlessLeased('500 milliseconds')
    await delay(checkIntervalMs)
  }
}

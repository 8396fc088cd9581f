import { statement } from '../../postgres/statement.ts'

/**
 * One value of a metric. Labels have few values: they describe hardware, locations and states, never tenants.
 */
export interface FleetMetricRow {
  metric: FleetMetric
  labels: Record<string, string>
  value: number
}

export type FleetMetric =
  | 'hosts'
  | 'gpus'
  | 'gpus_suspect'
  | 'vms'
  | 'engine_silence_seconds'
  | 'operations_in_progress'
  | 'operations_stuck'
  | 'operations_waiting'
  | 'operations_waiting_seconds'
  | 'capacity_requests_waiting'
  | 'capacity_requests_waiting_seconds'
  | 'webhook_deliveries_pending'
  | 'webhook_lag_seconds'
  | 'clock_ahead_seconds'

/** A cordoned host (`closed`) is up but gets no new VMs. A GPU that an operator holds back does not wait for a reset. */
const hostState = `CASE WHEN h.state = 'up' AND NOT h.is_schedulable THEN 'closed' ELSE h.state END`
const gpuState = `CASE WHEN g.is_held_back AND g.state = 'quarantined' THEN 'held_back' ELSE g.state END`

const secondsSince = (time: string) =>
  `greatest(0, coalesce(extract(epoch FROM slipway_now() - ${time}), 0))::float8`

const series = (metric: FleetMetric, labels: string, value: string, from: string) =>
  `SELECT '${metric}' AS metric, json_build_object(${labels}) AS labels, (${value})::float8 AS value ${from}`

// An operation waits from the time at which it could have been claimed. A paused step is not due yet.
const waitingOperations = `FROM locations l LEFT JOIN operation_queue q
   ON q.location = l.name AND q.lease_token IS NULL AND q.run_at <= slipway_now() GROUP BY l.name`

/** Reads the whole fleet in one snapshot, for /metrics. */
export const readFleetMetrics = statement<FleetMetricRow>(
  'fleet_metrics',
  [
    series(
      'hosts',
      `'location', h.location, 'state', ${hostState}`,
      'count(*)',
      `FROM hosts h WHERE h.forgotten_at IS NULL GROUP BY h.location, ${hostState}`,
    ),
    series(
      'gpus',
      `'location', h.location, 'model', g.model, 'state', ${gpuState}`,
      'count(*)',
      `FROM gpus g JOIN hosts h ON h.id = g.host_id WHERE h.forgotten_at IS NULL
       GROUP BY h.location, g.model, ${gpuState}`,
    ),
    series(
      'gpus_suspect',
      `'location', h.location, 'model', g.model`,
      'count(*) FILTER (WHERE g.suspect_since IS NOT NULL)',
      `FROM gpus g JOIN hosts h ON h.id = g.host_id WHERE h.forgotten_at IS NULL GROUP BY h.location, g.model`,
    ),
    series(
      'vms',
      `'location', v.location, 'state', v.state`,
      'count(*)',
      'FROM vms v WHERE v.deleted_at IS NULL GROUP BY v.location, v.state',
    ),
    series(
      'engine_silence_seconds',
      `'location', l.name, 'engine', l.engine`,
      secondsSince('l.engine_answered_at'),
      'FROM locations l',
    ),
    series('operations_in_progress', '', 'count(*)', 'FROM operation_queue'),
    series('operations_stuck', '', 'count(*)', 'FROM operations WHERE is_stuck'),
    series('operations_waiting', `'location', l.name`, 'count(q.operation_id)', waitingOperations),
    series(
      'operations_waiting_seconds',
      `'location', l.name`,
      secondsSince('min(q.run_at)'),
      waitingOperations,
    ),
    series(
      'capacity_requests_waiting',
      `'location', location, 'family', family`,
      'waiting',
      'FROM capacity_lanes',
    ),
    series(
      'capacity_requests_waiting_seconds',
      `'location', l.location, 'family', l.family`,
      secondsSince(`(SELECT min(r.created_at) FROM capacity_places p JOIN capacity_requests r ON r.id = p.request_id
        WHERE p.is_open AND p.location = l.location AND p.family = l.family)`),
      'FROM capacity_lanes l',
    ),
    series('webhook_deliveries_pending', '', 'count(*)', `FROM webhook_deliveries WHERE state = 'pending'`),
    series('webhook_lag_seconds', '', secondsSince('min(due_at)'), 'FROM webhooks WHERE due_at IS NOT NULL'),
    series('clock_ahead_seconds', '', 'extract(epoch FROM ahead)', 'FROM clock'),
  ].join(' UNION ALL '),
).all

import type { AlertKind } from '@slipway/contract'
import { zeroUuid } from '../../domain/ids.ts'
import { statement } from '../../postgres/statement.ts'
import { livesOnHost } from '../fleet/fleet.ts'
import { hasCommonCause } from '../fleet/gpu-health.ts'
import { failedCreationsOf } from './failed-creations.ts'

/** A condition that needs attention. `detail` contains the values for its message, except the name. */
export interface AlertRow {
  kind: AlertKind
  resource_type: string
  resource_id: string
  name: string
  project_id: string | null
  organization_id: string | null
  since: Date | null
  detail: Record<string, unknown>
}

/** A budget raises an alert from this percentage on. */
const budgetPercent = 80
/** After this many attempts, an operation will probably not succeed without help. */
const manyAttempts = 10
/** A reset takes at most a minute; a GPU that waits this long needs an operator. */
const longestReset = '15 minutes'

/** A shorter failure, such as the restart of a receiver, raises no alert. */
const longestWebhookFailure = '10 minutes'

/** How long an alert about a clock step is shown. */
const clockStepShown = '1 day'

const ofProjects = 'project_id = ANY (:projectIds::uuid[])'

const vmsInTrouble = `
  SELECT CASE v.state WHEN 'STATE_CRASHED' THEN 'crashed' ELSE 'unreachable' END AS kind, 'vm' AS resource_type,
         v.id AS resource_id, v.name, v.project_id, NULL::uuid AS organization_id,
         coalesce(v.state_since, v.updated_at) AS since,
         jsonb_build_object('is_os_disk_lost', v.os_disk_lost_at IS NOT NULL) AS detail
  FROM vms v
  WHERE v.${ofProjects} AND v.deleted_at IS NULL AND v.state IN ('STATE_CRASHED', 'STATE_UNREACHABLE')`

const vmsUnhealthy = `
  SELECT 'unhealthy', 'vm', v.id, v.name, v.project_id, NULL, (v.health ->> 'since')::timestamptz,
         jsonb_build_object('reason', v.health #>> '{reasons,-1,message}', 'is_replaced', v.on_gpu_fault = 'replace')
  FROM vms v
  WHERE v.${ofProjects} AND v.deleted_at IS NULL AND num_nulls(v.health) = 0 AND v.health ->> 'status' = 'unhealthy'
    AND v.state = 'STATE_RUNNING'`

// `num_nulls` keeps the planner from using the index of all VMs with a TTL, because the projects have fewer
// VMs.
const vmsExpiring = `
  SELECT 'expiring', 'vm', v.id, v.name, v.project_id, NULL, v.expiry_warned_at,
         jsonb_build_object('expires_at', v.expires_at, 'on_expiry', v.on_expiry)
  FROM vms v
  WHERE v.${ofProjects} AND v.deleted_at IS NULL AND v.expiry_warned_at IS NOT NULL AND num_nulls(v.expires_at) = 0
    AND v.state <> 'STATE_DELETING' AND NOT (v.state = 'STATE_SHUTOFF' AND v.on_expiry = 'stop')`

const operationName = `coalesce(v.name, d.name, r.name, '')`
// The index operations_in_trouble has the same condition.
const needsOperator = `o.state = 'IN_PROGRESS' AND (o.is_stuck OR o.attempts >= ${manyAttempts})`
const stuckOperations = (from: string) => `
  SELECT 'stuck', o.resource_type, o.resource_id, ${operationName}, o.project_id, NULL, o.started_at,
         jsonb_build_object('operation_id', o.id, 'operation_name', o.name, 'attempts', o.attempts, 'is_stuck', o.is_stuck)
  FROM ${from}
  LEFT JOIN vms v ON v.id = o.resource_id
  LEFT JOIN disks d ON d.id = o.resource_id
  LEFT JOIN firewall_rules r ON r.id = o.resource_id
  WHERE ${needsOperator}`

// If a VM or group with the same name exists, the creation was repeated, and there is no alert.
const failedCreations = (resourceType: 'vm' | 'instance_group', existing: string) => `
  SELECT 'creation_failed', '${resourceType}', o.resource_id, o.request ->> 'name', o.project_id, NULL, o.completed_at,
         jsonb_build_object('operation_id', o.id, 'reason', o.result ->> 'message')
  FROM ${failedCreationsOf(resourceType)} AND o.${ofProjects}
    AND NOT EXISTS (SELECT FROM ${existing} r WHERE r.project_id = o.project_id AND r.name = o.request ->> 'name')`
const failedVms = failedCreations('vm', '(SELECT * FROM vms WHERE deleted_at IS NULL)')
const failedGroups = failedCreations('instance_group', 'instance_groups')

const vmsOnHosts = (kind: string, since: string, detail: string, condition: string) => `
  SELECT '${kind}', 'vm', v.id, v.name, v.project_id, NULL, ${since},
         jsonb_build_object('location', h.location, 'can_move', l.storage = 'shared'${detail})
  FROM vms v JOIN hosts h ON h.id = v.host_id JOIN locations l ON l.name = h.location
  WHERE v.${ofProjects} AND v.deleted_at IS NULL AND v.state <> 'STATE_DELETING' AND ${livesOnHost} AND ${condition}`
const vmsOnDrainingHosts = vmsOnHosts('draining', 'NULL', '', `h.state = 'draining'`)
const vmsInMaintenance = vmsOnHosts(
  'maintenance',
  'h.maintenance_announced_at',
  `, 'at', h.maintenance_at, 'note', h.maintenance_note, 'has_begun', h.maintenance_at <= slipway_now()`,
  'h.maintenance_at IS NOT NULL',
)

const budgetsReached = `
  SELECT 'budget', 'project', p.id, p.name, p.id, NULL,
         (SELECT max(a.raised_at) FROM budget_alerts a
          WHERE a.project_id = p.id AND a.month = date_trunc('month', slipway_now() AT TIME ZONE 'UTC')::date),
         jsonb_build_object('percent', floor(m.spent_usd_ms * 100 / (b.monthly_usd * 3600000)),
                            'monthly_usd', b.monthly_usd, 'is_hard_stop', b.is_hard_stop)
  FROM budgets b JOIN projects p ON p.id = b.project_id
  CROSS JOIN LATERAL (SELECT coalesce((SELECT spent_by(s, slipway_now()) FROM project_spending s
                                       WHERE s.project_id = b.project_id), 0) AS spent_usd_ms) m
  WHERE b.${ofProjects} AND p.deleted_at IS NULL AND b.monthly_usd > 0
    AND m.spent_usd_ms * 100 >= b.monthly_usd * 3600000 * ${budgetPercent}`

// The name is only the host of the URL, because paths often contain tokens.
const webhooksFailing = `
  SELECT 'webhook_failing', 'webhook', w.id, regexp_replace(w.url, '^https?://([^/?#]*).*$', '\\1'),
         w.project_id, NULL, w.fails_since, jsonb_build_object('since', w.fails_since)
  FROM webhooks w
  WHERE w.${ofProjects} AND w.state = 'active' AND w.fails_since < slipway_now() - interval '${longestWebhookFailure}'`

const paymentsMissing = (scope: string) => `
  SELECT 'payment' AS kind, 'organization' AS resource_type, o.id AS resource_id, o.name, NULL::uuid AS project_id,
         o.id AS organization_id, o.payment_state_since AS since, jsonb_build_object('payment_state', o.payment_state) AS detail
  FROM organizations o WHERE ${scope} AND o.payment_state IN ('declined', 'removed')`
const invoicesDue = (scope: string) => `
  SELECT 'payment', 'invoice', i.id, o.name, NULL, o.id, i.issued_at,
         jsonb_build_object('month', to_char(i.month, 'YYYY-MM'), 'usd_cents', i.usd_cents)
  FROM invoices i JOIN organizations o ON o.id = i.organization_id WHERE ${scope} AND i.state = 'issued'`

const clockSteps = `
  SELECT 'clock', 'clock', '${zeroUuid}'::uuid, 'PostgreSQL', NULL, NULL, c.stepped_at,
         jsonb_build_object('seconds', round(extract(epoch FROM c.step)), 'ahead_seconds', ceil(extract(epoch FROM c.ahead)))
  FROM clock c
  WHERE c.ahead > interval '5 seconds' OR c.stepped_at > statement_timestamp() + c.ahead - interval '${clockStepShown}'`

const hostsLost = `
  SELECT 'host_lost', 'host', h.id, h.name, NULL, NULL, r.reported_at, jsonb_build_object('location', h.location)
  FROM hosts h LEFT JOIN host_reports r ON r.host_id = h.id WHERE h.state = 'down' AND h.forgotten_at IS NULL`

// A short failure does not raise an alert.
const locationsUnread = `
  SELECT 'location_unread', 'location', '${zeroUuid}'::uuid, l.name, NULL, NULL, l.engine_answered_at,
         jsonb_build_object('problem', l.engine_problem)
  FROM locations l
  WHERE l.engine_problem <> ''
    AND coalesce(l.engine_answered_at < slipway_now() - interval '1 minute', true)`

// Problems that an engine finds on a host and that an operator has to fix.
const hostsWithProblems = `
  SELECT 'host_problem', 'host', h.id, h.name, NULL, NULL, r.reported_at,
         jsonb_build_object('location', h.location, 'problem', p.text)
  FROM hosts h LEFT JOIN host_reports r ON r.host_id = h.id
  CROSS JOIN LATERAL jsonb_array_elements_text(h.capabilities->'problems') p (text)
  WHERE jsonb_typeof(h.capabilities->'problems') = 'array' AND h.forgotten_at IS NULL`

// Under the same condition, the service does not replace VMs in the location.
const massFaults = `
  SELECT 'mass_gpu_fault', 'location', '${zeroUuid}'::uuid, l.name, NULL::uuid, NULL::uuid, s.since, jsonb_build_object('count', s.count)
  FROM locations l CROSS JOIN LATERAL (
    SELECT count(*) AS count, max((v.health ->> 'since')::timestamptz) AS since FROM vms v
    WHERE v.location = l.name AND v.health IS NOT NULL AND v.health ->> 'status' = 'unhealthy' AND v.deleted_at IS NULL) s
  WHERE ${hasCommonCause('l.name')}`

const gpuColumns = `'gpu_fault', 'gpu', g.id, h.name || ' ' || g.pci_address, NULL::uuid, NULL::uuid`
const gpusMissing = `
  SELECT ${gpuColumns}, NULL::timestamptz, jsonb_build_object('state', g.state, 'model', g.model, 'location', h.location)
  FROM gpus g JOIN hosts h ON h.id = g.host_id WHERE g.state = 'gone' AND h.forgotten_at IS NULL`
// A GPU that an operator holds back raises no alert.
const gpusUnclean = `
  SELECT ${gpuColumns}, g.quarantined_at, jsonb_build_object('state', g.state, 'model', g.model, 'location', h.location)
  FROM gpus g JOIN hosts h ON h.id = g.host_id
  WHERE g.state = 'quarantined' AND NOT g.is_held_back AND g.quarantined_at < slipway_now() - interval '${longestReset}'
    AND h.state <> 'down'`

const reservationsLate = `
  SELECT 'reservation_late', 'reservation', r.id, o.name, NULL, o.id, lower(r.term),
         jsonb_build_object('location', r.location, 'family', r.family, 'quantity', r.quantity, 'delivered', r.metered_gpus)
  FROM reservations r JOIN organizations o ON o.id = r.organization_id
  WHERE r.is_short AND r.ended_at IS NULL`

// The quota of the request is part of the message, so that the alert has what operators need to decide.
const quotaRequests = `
  SELECT 'quota_request', 'quota_request', r.id, o.name, NULL, o.id, r.created_at,
         jsonb_build_object('quota', r.name, 'max', r.max, 'reason', r.reason)
  FROM quota_requests r JOIN organizations o ON o.id = r.organization_id WHERE r.decided_at IS NULL`

const union = (parts: string[]) =>
  `SELECT * FROM (${parts.join(' UNION ALL ')}) a ORDER BY since DESC NULLS LAST, resource_id LIMIT :limit`

/**
 * Lists the latest alerts of some projects and of their organization. Reads only the VMs and the unfinished
 * operations of these projects.
 */
export const listAlerts = statement<
  AlertRow,
  { projectIds: string[]; organizationId: string; limit: number }
>(
  'alert_list',
  union([
    vmsInTrouble,
    vmsUnhealthy,
    vmsExpiring,
    failedVms,
    failedGroups,
    vmsInMaintenance,
    vmsOnDrainingHosts,
    stuckOperations(`operation_queue q JOIN operations o ON o.id = q.operation_id AND q.${ofProjects}`),
    budgetsReached,
    webhooksFailing,
    paymentsMissing('o.id = :organizationId'),
    invoicesDue('i.organization_id = :organizationId'),
  ]),
).allBy('organizationId', 'projectIds', 'limit')

/** Lists the latest alerts for operators. */
export const listOperatorAlerts = statement<AlertRow, { limit: number }>(
  'alert_list_all',
  union([
    paymentsMissing('true'),
    invoicesDue('true'),
    stuckOperations('operations o'),
    clockSteps,
    locationsUnread,
    hostsLost,
    hostsWithProblems,
    massFaults,
    gpusMissing,
    gpusUnclean,
    reservationsLate,
    quotaRequests,
  ]),
).allBy('limit')

import { statement } from '../../postgres/statement.ts'

export interface ProjectSummaryRow {
  id: string
  name: string
  vms: number
  running_vms: number
  usd_per_hour: string
  month_to_date_usd: string
}

/**
 * Lists the projects of an organization, oldest first. Counts only the VMs of these projects; the costs are running
 * totals.
 */
export const listProjectSummaries = statement<ProjectSummaryRow, { organizationId: string }>(
  'project_summaries',
  `SELECT p.id, p.name, v.vms, v.running_vms, round(coalesce(s.usd_per_hour, 0), 6)::text AS usd_per_hour,
          round(coalesce(spent_by(s, slipway_now()), 0) / 3600000, 6)::text AS month_to_date_usd
   FROM projects p LEFT JOIN project_spending s ON s.project_id = p.id
   CROSS JOIN LATERAL (SELECT count(*) AS vms, count(*) FILTER (WHERE state = 'STATE_RUNNING') AS running_vms
                       FROM vms WHERE project_id = p.id AND deleted_at IS NULL) v
   WHERE p.organization_id = :organizationId AND p.deleted_at IS NULL ORDER BY p.id`,
).allBy('organizationId')

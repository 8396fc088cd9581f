import type { VmState } from '@slipway/contract'
import { filteredStatement, isBefore, type PageParams, statement } from '../../postgres/statement.ts'
import { livesOnHost } from '../fleet/fleet.ts'

/** A VM as operators see it: with its tenant, but without the tenant's data. */
export interface TenantVmRow {
  id: string
  name: string
  state: VmState
  type: string
  location: string
  host_id: string | null
  project_id: string
  project_name: string
  organization_id: string
  organization_name: string
  created_at: Date
}

interface TenantVmFilter extends PageParams {
  organizationId: string | null
  ids: string[] | null
}

/** Lists the VMs of every tenant, the newest first. */
export const listTenantVms = filteredStatement<TenantVmRow, TenantVmFilter>(
  'vm_list_all',
  (given) => `SELECT v.id, v.name, v.state, v.type, v.location, v.project_id, p.name AS project_name,
          o.id AS organization_id, o.name AS organization_name, v.created_at,
          (SELECT h.id FROM hosts h JOIN locations l ON l.name = h.location WHERE ${livesOnHost}) AS host_id
   FROM vms v JOIN projects p ON p.id = v.project_id JOIN organizations o ON o.id = p.organization_id
   WHERE v.deleted_at IS NULL AND ${isBefore('v.id')} ${given} ORDER BY v.id DESC LIMIT :limit`,
  { organizationId: 'p.organization_id = :organizationId', ids: 'v.id = ANY (:ids::uuid[])' },
).all

// Skips VMs with an unfinished operation; a later run finds them. The order of the joins makes the plan start
// with the few suspended organizations, so that it never scans all VMs.
export const selectVmsToStop = `WITH suspended_projects AS MATERIALIZED (
     SELECT id FROM projects
     WHERE organization_id = ANY (ARRAY(SELECT id FROM organizations WHERE stops_vms)) AND deleted_at IS NULL)
   SELECT v.id, v.project_id FROM suspended_projects CROSS JOIN LATERAL (
     SELECT v.id, v.project_id FROM vms v
     WHERE v.project_id = suspended_projects.id AND v.deleted_at IS NULL AND v.state IN ('STATE_RUNNING', 'STATE_CRASHED')
       AND (SELECT q.operation_id FROM operation_queue q WHERE q.resource_id = v.id LIMIT 1) IS NULL
     OFFSET 0) v`

/** Lists the running and crashed VMs of organizations with a suspension that stops VMs. */
export const listVmsOfSuspendedOrganizations = statement<
  { id: string; project_id: string },
  { limit: number }
>('vm_list_of_suspended', `${selectVmsToStop} LIMIT :limit`).allBy('limit')

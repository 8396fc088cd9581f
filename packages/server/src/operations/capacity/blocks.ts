import type { Tx } from '../../postgres/database.ts'
import { type BlockReason, findBlockConditions, type RequestRow } from '../../store/capacity/requests.ts'
import { hasRoomInQuota } from '../../store/compute/organization-quotas.ts'
import { readQuotas } from '../../store/compute/quotas.ts'
import { budgetRefusal } from '../budget.ts'
import { mayReplaceByPolicy } from '../health/guards.ts'

/** Why a request is skipped. */
export interface Block {
  /** Shown as `blocked_by`. Empty if the request must only wait, for example after an unused hold or during a mass fault. */
  reason: BlockReason | ''
  /** When the reason ends, if that is known. */
  until: Date | null
  /** How soon to check again if the end is not known. */
  recheckS?: number
}

/** Returns why GPUs at the location cannot be given to the request now; undefined if nothing blocks it. */
export async function blockOf(tx: Tx, request: RequestRow, location: string): Promise<Block | undefined> {
  const conditions = (await findBlockConditions(tx, { id: request.id, location }))!
  if (conditions.is_suspended) return { reason: 'suspended', until: null }
  if (!conditions.is_paid) return { reason: 'payment', until: null }
  if (request.on_available === 'hold' && conditions.no_hold_until)
    return { reason: '', until: conditions.no_hold_until }
  if (request.replace_vm_id && !(await mayReplaceByPolicy(tx, request.replace_vm_id, location)))
    return { reason: '', until: null }
  if (await budgetRefusal(tx, request.project_id)) return { reason: 'budget', until: null }
  return (await exceedsQuota(tx, request)) ? { reason: 'quota', until: null } : undefined
}

async function exceedsQuota(tx: Tx, { project_id, organization_id, amounts, body }: RequestRow) {
  const wanted = { projectId: project_id, amounts }
  if ((await readQuotas(tx, wanted)).take(wanted)) return true
  return body.instance_group !== undefined && !(await hasRoomInQuota(tx, organization_id, 'instance_groups'))
}

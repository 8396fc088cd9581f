import { gpuQuota, vmType } from '@slipway/contract'
import type { Tx } from '../../postgres/database.ts'
import { type BlockReason, findStanding, type RequestRow } from '../../store/capacity/requests.ts'
import { type QuotaAmounts, readQuotas } from '../../store/compute/quotas.ts'
import { budgetRefusal } from '../budget.ts'
import { osDiskOf } from '../vm/given.ts'
import { newDisksOf } from '../vm/new-disks.ts'
import { quotaAmountsOf } from '../vm/plan.ts'
import type { VmBody } from '../vm/template.ts'

/** The reason why a request is passed over. */
export interface Block {
  reason: BlockReason | ''
  /** When the reason ends, if that is known. */
  until: Date | null
  /** How soon to check again if the end is not known. */
  recheckS?: number
}

/** Returns why GPUs at the location cannot be given to the request now; undefined if nothing blocks it. */
export async function blockOf(tx: Tx, request: RequestRow, location: string): Promise<Block | undefined> {
  const standing = (await findStanding(tx, { id: request.id, location }))!
  if (standing.is_suspended) return { reason: 'suspended', until: null }
  if (!standing.is_paid) return { reason: 'payment', until: null }
  if (request.on_available === 'hold' && standing.no_hold_until)
    return { reason: '', until: standing.no_hold_until }
  if (await budgetRefusal(tx, request.project_id)) return { reason: 'budget', until: null }
  const wanted = { projectId: request.project_id, amounts: amountsOf(request) }
  return (await readQuotas(tx, wanted)).take(wanted) ? { reason: 'quota', until: null } : undefined
}

/** Returns the quota that the VM of a request will take. A stopped VM already holds everything except its GPUs. */
function amountsOf({ body, project_id, family, gpus, location }: RequestRow): QuotaAmounts {
  if (!body.vm) return { [gpuQuota(family)]: gpus }
  // The members of a template were added when the request was sent.
  const vm = body.vm as VmBody
  const type = vmType(vm.type)!
  const newDisks = newDisksOf(project_id, vm, type, location)
  return quotaAmountsOf({ type, osDisk: osDiskOf(vm), newDisks })
}

import type { Operation, OperationResourceType, OperationStep, RouteId } from '@slipway/contract'
import { requireFound } from '../../domain/failure.ts'
import { stepNames } from '../../operations/index.ts'
import { JsonText } from '../../postgres/json.ts'
import type { BegunOperation, OperationRow } from '../../store/compute/operation-row.ts'
import { findOperationRecord, operationView } from '../../store/compute/operation-view.ts'
import { findOperation, listOperations } from '../../store/compute/operations.ts'
import { holderOf, showsScripts } from '../access.ts'
import type { Context, Handlers } from '../context.ts'
import { pageOfRecords } from '../pages.ts'

type ListId = Extract<RouteId, 'operationList' | `${string}OperationList`> &
  Exclude<RouteId, `admin${string}`>
type GetId = Extract<RouteId, 'operationGet' | `${string}OperationGet`> & Exclude<RouteId, `admin${string}`>

/** The response of every route that begins an operation. */
export const operationResponse = (operation: BegunOperation) => ({ operation: operationView(operation) })

function list(context: Context<ListId>, type: OperationResourceType | null) {
  const { tx, query, project } = context
  const filter = {
    projectId: project.projectId,
    type,
    state: query.state ?? null,
    resourceId: query.resource_id ?? null,
  }
  return pageOfRecords<Operation>(context, (beforeId, limit, bytes) =>
    listOperations(tx, { ...filter, beforeId, limit, bytes }),
  )
}

async function get(
  context: Context<GetId>,
  type: OperationResourceType | null,
): Promise<JsonText<Operation>> {
  const { tx, project, params, query, services, request, reply } = context
  const mayReadScripts = showsScripts(request.grant)
  const find = async () =>
    requireFound(
      'operation',
      await findOperationRecord(tx, project.projectId, params.operation_id, type, mayReadScripts),
    )
  if (!query.wait) return new JsonText((await find()).record)
  const wait = services.operationWaits.begin(params.operation_id)
  try {
    const now = await find()
    if (now.state !== 'IN_PROGRESS') return new JsonText(now.record)
    const ended = await wait.within(query.wait * 1000, holderOf(request), reply.raw)
    await context.requireStillAllowed()
    // The record that ended the wait contains scripts. A caller that may not read scripts gets another record.
    return new JsonText((mayReadScripts && ended) || (await find()).record)
  } finally {
    wait.close()
  }
}

async function steps(context: Context<'operationSteps'>) {
  const { tx, project, params } = context
  const row = requireFound('operation', await findOperation(tx, project.projectId, params.operation_id, null))
  return { items: stepViews(row) }
}

/** All steps of the operation, including those that have not begun. */
export function stepViews({ kind, step_log }: Pick<OperationRow, 'kind' | 'step_log'>): OperationStep[] {
  const begun = new Map(step_log.map((entry) => [entry.name, entry]))
  const names = stepNames.get(kind) ?? []
  return names.map((name) => begun.get(name) ?? { name, state: 'pending', started_at: '', completed_at: '' })
}

export const operationHandlers = {
  operationList: (context) => list(context, null),
  operationGet: (context) => get(context, null),
  operationSteps: steps,
  vmOperationList: (context) => list(context, 'vm'),
  vmOperationGet: (context) => get(context, 'vm'),
  diskOperationList: (context) => list(context, 'disk'),
  diskOperationGet: (context) => get(context, 'disk'),
  firewallRuleOperationList: (context) => list(context, 'firewall_rule'),
  firewallRuleOperationGet: (context) => get(context, 'firewall_rule'),
  instanceGroupOperationList: (context) => list(context, 'instance_group'),
  instanceGroupOperationGet: (context) => get(context, 'instance_group'),
  customImageOperationList: (context) => list(context, 'custom_image'),
  customImageOperationGet: (context) => get(context, 'custom_image'),
  snapshotOperationList: (context) => list(context, 'snapshot'),
  snapshotOperationGet: (context) => get(context, 'snapshot'),
} satisfies Partial<Handlers>

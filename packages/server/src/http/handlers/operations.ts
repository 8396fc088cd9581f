import type { Operation, OperationStep, OperationType, RouteId } from '@slipway/contract'
import { notFound } from '../../domain/failure.ts'
import { stepNames } from '../../operations/index.ts'
import { JsonText } from '../../postgres/json.ts'
import type { BegunOperation } from '../../store/compute/operation-row.ts'
import { findOperationRecord, operationView } from '../../store/compute/operation-view.ts'
import { findOperation, listOperations } from '../../store/compute/operations.ts'
import { type Context, type Handlers, requireCaller } from '../context.ts'
import { pageOfRecords } from '../pages.ts'
import type { Ending } from '../streams/endings.ts'

type ListId = Extract<RouteId, 'operationList' | `${string}OperationList`> &
  Exclude<RouteId, `admin${string}`>
type GetId = Extract<RouteId, 'operationGet' | `${string}OperationGet`>

/** The answer of whatever begins an operation. */
export const started = (operation: BegunOperation) => ({ operation: operationView(operation) })

function list(context: Context<ListId>, type: OperationType | null) {
  const { tx, query, project } = context
  const filter = {
    projectId: project.projectId,
    type,
    state: query.state ?? null,
    resourceId: query.resource_id ?? null,
  }
  return pageOfRecords<Operation>(context, (beforeId, limit) =>
    listOperations(tx, { ...filter, beforeId, limit }),
  )
}

async function get(context: Context<GetId>, type: OperationType | null): Promise<JsonText<Operation>> {
  const { tx, project, params, query, services } = context
  const find = async () => {
    const found = await findOperationRecord(tx, project.projectId, params.operation_id, type)
    if (!found) throw notFound('operation')
    return found
  }
  if (!query.wait) return new JsonText((await find()).record)
  const ending = services.endings.listen(params.operation_id)
  try {
    const now = await find()
    if (now.state !== 'IN_PROGRESS') return new JsonText(now.record)
    const ended = await wait(context, ending, query.wait * 1000)
    await context.requireStill()
    return new JsonText(ended ?? (await find()).record)
  } finally {
    ending.close()
  }
}

async function wait(context: Context, ending: Ending, ms: number): Promise<string | undefined> {
  const release = context.services.waits.hold(requireCaller(context).key)
  const hangUp = new AbortController()
  const onClose = () => hangUp.abort()
  context.reply.raw.once('close', onClose)
  try {
    return await ending.within(ms, hangUp.signal)
  } finally {
    context.reply.raw.off('close', onClose)
    release()
  }
}

async function steps(context: Context<'operationSteps'>) {
  const row = await findOperation(context.tx, context.project.projectId, context.params.operation_id, null)
  if (!row) throw notFound('operation')
  const begun = new Map(row.step_log.map((entry) => [entry.name, entry]))
  const names = stepNames.get(row.kind) ?? []
  const items = names.map(
    (name): OperationStep => begun.get(name) ?? { name, state: 'pending', started_at: '', completed_at: '' },
  )
  return { items }
}

export const operationHandlers: Handlers<ListId | GetId | 'operationSteps'> = {
  operationList: (context) => list(context, null),
  operationGet: (context) => get(context, null),
  operationSteps: steps,
  vmOperationList: (context) => list(context, 'vm'),
  vmOperationGet: (context) => get(context, 'vm'),
  diskOperationList: (context) => list(context, 'disk'),
  diskOperationGet: (context) => get(context, 'disk'),
  firewallRuleOperationList: (context) => list(context, 'firewall_rule'),
  firewallRuleOperationGet: (context) => get(context, 'firewall_rule'),
}

import type { Operation, OperationStep, OperationType, RouteId } from '@slipway/contract'
import { notFound } from '../../domain/failure.ts'
import { stepNames } from '../../operations/index.ts'
import { findOperation, listOperations, operationView } from '../../store/compute/operations.ts'
import type { Context, Handlers } from '../context.ts'
import { pageLimit, readPageToken, toPage } from '../pages.ts'

/** While waiting: how often to look, in case no wake-up comes. */
const lookMs = 2_000

type ListId = Extract<RouteId, 'operationList' | `${string}OperationList`> &
  Exclude<RouteId, `admin${string}`>
type GetId = Extract<RouteId, 'operationGet' | `${string}OperationGet`>

async function list(context: Context<ListId>, type: OperationType | null) {
  const { query, project } = context
  const key = `operations ${project.projectId} ${type ?? 'all'}`
  const limit = pageLimit(query)
  const rows = await listOperations(context.tx, {
    projectId: project.projectId,
    beforeId: readPageToken(key, query.page_token),
    type,
    state: query.state ?? null,
    resourceId: query.resource_id ?? null,
    limit: limit + 1,
  })
  return toPage(key, rows, limit, (row) => row.id, operationView)
}

async function get(context: Context<GetId>, type: OperationType | null): Promise<Operation> {
  const { projectId } = context.project
  const find = () => findOperation(context.tx, projectId, context.params.operation_id, type)
  let row = await find()
  if (!row) throw notFound('operation')
  const until = performance.now() + (context.query.wait ?? 0) * 1000
  while (row?.state === 'IN_PROGRESS' && performance.now() < until && !context.request.raw.destroyed) {
    await endingOf(context, row.id, Math.min(lookMs, until - performance.now()))
    row = await find()
  }
  if (!row) throw notFound('operation')
  return operationView(row)
}

/** Resolves when the operation ends (or any does in another process), the caller hangs up, or after `ms`. */
function endingOf(context: Context, operationId: string, ms: number): Promise<void> {
  return new Promise((resolve) => {
    const finish = () => {
      clearTimeout(timer)
      unsubscribe()
      context.request.raw.off('close', finish)
      resolve()
    }
    const timer = setTimeout(finish, ms)
    const unsubscribe = context.services.signals.on('ended', (ended) => {
      if (ended === undefined || ended === operationId) finish()
    })
    context.request.raw.once('close', finish)
  })
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

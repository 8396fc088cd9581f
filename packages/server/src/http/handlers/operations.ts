import type { Operation, OperationStep, OperationType, RouteId } from '@slipway/contract'
import { notFound } from '../../domain/failure.ts'
import { stepNames } from '../../operations/index.ts'
import {
  findOperation,
  listOperations,
  type OperationRow,
  operationView,
} from '../../store/compute/operations.ts'
import type { Context, Handlers } from '../context.ts'
import { pageById } from '../pages.ts'

/** While waiting: how often to look, in case no wake-up comes. */
const lookMs = 2_000

type ListId = Extract<RouteId, 'operationList' | `${string}OperationList`> &
  Exclude<RouteId, `admin${string}`>
type GetId = Extract<RouteId, 'operationGet' | `${string}OperationGet`>

/** The answer of whatever begins an operation. */
export const started = (operation: OperationRow) => ({ operation: operationView(operation) })

function list(context: Context<ListId>, type: OperationType | null) {
  const { tx, query, project } = context
  const filter = {
    projectId: project.projectId,
    type,
    state: query.state ?? null,
    resourceId: query.resource_id ?? null,
  }
  return pageById(
    context,
    (beforeId, limit) => listOperations(tx, { ...filter, beforeId, limit }),
    operationView,
  )
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

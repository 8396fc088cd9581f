import { type Operation, routeOf } from '@slipway/contract'
import { Failure, requireFound } from '../../../domain/failure.ts'
import { findFamilyOperation } from '../../../store/family/operations.ts'
import type { FamilyCall } from '../request.ts'
import { type FamilyOperation, operationShape } from '../shapes/operations.ts'
import { type FamilyRoute, get } from './route.ts'

/** Each kind of resource serves the same operations under its own path. */
const resources = [
  'compute/vms/instances',
  'compute/custom-images',
  'compute/instance-groups',
  'storage/disks',
  'storage/snapshots',
  'networking/vpc-firewall-rules',
  'networking/vpc-networks',
  'networking/vpc-subnets',
]

export const operationRoutes: FamilyRoute[] = resources.map((resource) =>
  get(`/projects/:project_id/${resource}/operations/:operation_id`, readOperation),
)

/** Returns an operation of Slipway's own API, or one that only clients of the compatible API see. */
async function readOperation(call: FamilyCall): Promise<FamilyOperation> {
  try {
    return operationShape(await call.ownApi('operationGet'))
  } catch (error) {
    if (!(error instanceof Failure && error.code === 'not_found')) throw error
  }
  const { services, signer, params, projectId } = call
  await services.access.authorize(routeOf('operationGet'), signer.caller, params)
  const found = await findFamilyOperation(services.database, projectId, params.operation_id ?? '')
  const { operation, parts } = requireFound('operation', found)
  return parts.length === 0
    ? (operation as unknown as FamilyOperation)
    : joinParts(operation as unknown as FamilyOperation, await readParts(call, parts))
}

const readParts = (call: FamilyCall, parts: string[]): Promise<Operation[]> =>
  Promise.all(parts.map((operation_id) => call.ownApi('operationGet', { params: { operation_id } })))

/**
 * Returns an operation with the state of its parts. Once all parts have ended, it has failed if one of them
 * has failed.
 */
function joinParts(operation: FamilyOperation, parts: Operation[]): FamilyOperation {
  if (parts.some(({ state }) => state === 'IN_PROGRESS')) return operation
  const shapes = parts.map(operationShape)
  const completed_at = shapes
    .map((part) => part.completed_at)
    .sort()
    .at(-1)!
  const failed = shapes.find(({ state }) => state === 'FAILED')
  return failed
    ? { ...operation, state: 'FAILED', result: failed.result, completed_at }
    : { ...operation, state: 'SUCCEEDED', result: shapes.map(({ result }) => result), completed_at }
}

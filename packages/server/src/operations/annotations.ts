import type { EventType, Labels, OperationResourceType } from '@slipway/contract'
import { Failure } from '../domain/failure.ts'
import { uuid } from '../domain/ids.ts'
import type { Tx } from '../postgres/database.ts'
import { insertFinishedOperation } from '../store/compute/finished-operations.ts'
import type { BegunOperation } from '../store/compute/operation-row.ts'
import { emit } from '../store/events/events.ts'
import type { ProjectRequester } from './admission.ts'

/** The fields of a VM, disk or instance group that this file uses. */
interface AnnotatedResource {
  id: string
  name: string
  location: string
  generation: number
  labels: Labels
  is_protected: boolean
}

/** Returns the 409 for the deletion of a protected resource; undefined if the resource is not protected. */
export function protectionRefusal(
  what: string,
  { name, is_protected }: Pick<AnnotatedResource, 'name' | 'is_protected'>,
): Failure | undefined {
  if (!is_protected) return undefined
  const advice = 'set deletion_protection to false first'
  return new Failure('protected', `The ${what} ${name} is protected against deletion: ${advice}.`)
}

/**
 * Records a change of name, description, labels or protection as an operation that has already finished. It needs no engine
 * and does not wait for other operations on the resource.
 */
export async function recordAnnotation(
  tx: Tx,
  by: ProjectRequester,
  resourceType: Extract<OperationResourceType, 'vm' | 'disk' | 'instance_group'>,
  changed: AnnotatedResource,
  request: object,
  result: unknown,
): Promise<BegunOperation> {
  const operation = await insertFinishedOperation(tx, {
    id: uuid(),
    projectId: by.projectId,
    kind: `${resourceType}-annotate`,
    name: 'UPDATE',
    resourceType,
    resourceId: changed.id,
    location: changed.location,
    generation: changed.generation,
    request,
    result,
    actor: by.actor,
    requestId: by.requestId,
  })
  const about = { operation_id: operation.id, operation_name: operation.name }
  const emitChange = (type: EventType, data: Record<string, unknown>) =>
    emit(tx, { ...by, type, resourceType, resourceId: changed.id, data: { ...about, ...data } })
  await emitChange(`${resourceType}.updated`, { name: changed.name, labels: changed.labels, ...request })
  await emitChange('operation.succeeded', {})
  return operation
}

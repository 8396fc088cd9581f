import type { Tx } from '../postgres/database.ts'
import type { OperationRow } from '../store/compute/operation-row.ts'
import { emit } from '../store/events/events.ts'
import type { Step } from './operation.ts'

/** An operation waits for an operator: its tenant and whoever watches the service are told. */
export function emitStuck(
  tx: Tx,
  { id, name, project_id, resource_type, resource_id }: OperationRow,
  step: Step,
): Promise<void> {
  return emit(tx, {
    type: 'operation.stuck',
    resourceType: resource_type,
    resourceId: resource_id,
    projectId: project_id,
    data: { operation_id: id, operation_name: name, step: step.name },
  })
}

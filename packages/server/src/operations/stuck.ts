import type { Tx } from '../store/database.ts'
import { emitEvent } from '../store/events.ts'
import type { OperationRow } from '../store/operations.ts'
import type { Step, Workshop } from './operation.ts'

/** An operation waits for an operator: its tenant and whoever watches the service are told. */
export function tellOfBeingStuck(
  tx: Tx,
  { signals }: Workshop,
  { id, name, project_id, resource_type, resource_id }: OperationRow,
  step: Step,
): Promise<void> {
  tx.afterCommit(() => signals.send('events'))
  return emitEvent(tx, {
    type: 'operation.stuck',
    resourceType: resource_type,
    resourceId: resource_id,
    projectId: project_id,
    actor: 'system',
    requestId: '',
    data: { operation_id: id, operation_name: name, step: step.name },
  })
}

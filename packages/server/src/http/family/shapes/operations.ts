import type { Operation } from '@slipway/contract'
import { diskShape } from './disks.ts'
import { imageShape, snapshotShape } from './images.ts'
import { groupShape } from './instances.ts'
import { ruleShape } from './network.ts'
import { inSeconds } from './time.ts'
import { vmShape } from './vms.ts'

export interface FamilyOperation {
  operation_id: string
  state: Operation['state']
  metadata: { operation_name: string; id: string; type: string; request?: object }
  result: unknown
  started_at: string
  completed_at: string
}

const resultShapes: Record<Operation['metadata']['type'], (result: never) => unknown> = {
  vm: vmShape,
  disk: diskShape,
  firewall_rule: ruleShape,
  instance_group: groupShape,
  custom_image: imageShape,
  snapshot: snapshotShape,
}

export const operationShape = (operation: Operation): FamilyOperation => ({
  ...operation,
  result: resultShape(operation),
  started_at: inSeconds(operation.started_at),
  completed_at: inSeconds(operation.completed_at),
})

/** A failed operation has a code and a message, and a deletion has no result. */
function resultShape({ state, metadata, result }: Operation): unknown {
  if (state !== 'SUCCEEDED' || result === null) return result
  return resultShapes[metadata.type](result as never)
}

import type { Costs } from '@slipway/contract'
import type { Receiver } from '@slipway/testing/webhook-receiver.ts'
import type { Acknowledged } from './client.ts'
import type { Cluster } from './cluster.ts'
import type { History } from './history.ts'

/** The data that a run leaves for its checks. */
export interface Evidence {
  cluster: Cluster
  history: History
  projectId: string
  acknowledged: Acknowledged[]
  /** All events after this position were written while the stream and the webhook were observed. */
  fromPosition: number
  streamedIds: string[]
  receiver: Receiver
  /** The costs that the API returned while the clock was frozen. */
  costs: Costs
}

export interface EventRow {
  id: string
  position: number
  type: string
  resource_id: string
  operation_id: string | null
  created_ms: number
}

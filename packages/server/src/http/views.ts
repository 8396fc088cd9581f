import type { Event } from '@slipway/contract'
import type { EventRow } from '../store/events.ts'
import { time } from '../store/time.ts'

export const viewEvent = (row: EventRow): Event => ({
  id: row.id,
  position: row.position,
  type: row.type,
  resource_type: row.resource_type,
  resource_id: row.resource_id,
  actor: row.actor,
  request_id: row.request_id,
  data: row.data,
  created_at: time(row.created_at),
})

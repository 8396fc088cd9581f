import type { ListItem, RouteResponse } from '@slipway/sdk'

type Request = ListItem<'adminCapacityRequestList'>
type FamilyCapacity = RouteResponse<'adminCapacityList'>['items'][number]

/** The queue for the GPUs of one family in one location. */
export interface Queue {
  family: string
  location: string
  requestIds: Set<string>
  gpus: number
  free: number
  held: number
  /** The expected time of the next grant; empty if there is no estimate. */
  nextAt: string
  oldestAt: string
}

/** Returns a location's queues that have waiting requests. A request whose GPUs are held waits no longer. */
export function queuesOf(location: string, open: Request[], capacity: FamilyCapacity[]): Queue[] {
  const waiting = open.filter(({ state }) => state === 'waiting')
  const families = [...new Set(waiting.map(({ family }) => family))].sort()
  return families.map((family) => {
    const rows = waiting.filter((request) => request.family === family)
    const gpus = capacity.find((item) => item.location === location && item.family === family)
    return {
      family,
      location,
      requestIds: new Set(rows.map(({ id }) => id)),
      gpus: rows.reduce((sum, { gpus_wanted }) => sum + gpus_wanted, 0),
      free: gpus?.free ?? 0,
      held: gpus?.held ?? 0,
      nextAt: earliest(rows.map(({ estimate }) => estimate.likely_at)),
      oldestAt: earliest(rows.map(({ created_at }) => created_at)),
    }
  })
}

/** ISO timestamps in the same format can be sorted as strings. */
const earliest = (times: string[]): string => times.filter(Boolean).sort()[0] ?? ''

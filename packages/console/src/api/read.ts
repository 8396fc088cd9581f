import {
  type CallInput,
  isPaged,
  type ListId,
  type ListItem,
  type RouteId,
  type RouteResponse,
  type Target,
} from '@slipway/sdk'
import { queryOptions } from '@tanstack/react-query'
import { client } from './client.ts'

/** Reads one route. The key begins with the route's id, so that live events can name what they touch. */
export function read<Id extends RouteId>(id: Id, input: CallInput<Id>) {
  const { params, query } = input as { params?: object; query?: object }
  return queryOptions<RouteResponse<Id>>({
    queryKey: [id, { ...params, ...query }],
    queryFn: ({ signal }) => client.call(id, { ...input, signal }),
  })
}

/**
 * While the event stream is open it keeps these lists true row by row, and whenever it opens they are read again. Nothing
 * else is reason enough to read ten thousand rows, or to compare them one by one with those before.
 */
const keptLive = { staleTime: 300_000, refetchOnWindowFocus: true, structuralSharing: false } as const
const isKeptLive = (id: ListId) => id === 'vmList' || id === 'diskList'

/** Reads all items of a list, page after page. */
export function readAll<Id extends ListId>(id: Id, target: Omit<Target<Id>, 'page_token'>) {
  return queryOptions<ListItem<Id>[]>({
    queryKey: [id, { ...target, all: true }],
    queryFn: ({ signal }) => client.collect(id, isPaged(id) ? { ...target, limit: 500 } : target, { signal }),
    ...(isKeptLive(id) && keptLive),
  })
}

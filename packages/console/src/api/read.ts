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

/** Query options for one route. The key begins with the route's ID, so that live events can invalidate it. */
export function read<Id extends RouteId>(id: Id, input: CallInput<Id>) {
  const { params, query } = input as { params?: object; query?: object }
  return queryOptions<RouteResponse<Id>>({
    queryKey: [id, { ...params, ...query }],
    queryFn: ({ signal }) => client.call(id, { ...input, signal }),
  })
}

/**
 * The event stream updates these lists row by row, and they are refetched when the stream connects. A list can
 * have ten thousand rows, so these options avoid most other refetches, and the library's comparison of the earlier and the
 * later data (structural sharing).
 */
const liveListOptions = { staleTime: 300_000, refetchOnWindowFocus: true, structuralSharing: false } as const
const isLiveList = (id: ListId) => id === 'vmList' || id === 'diskList'

/** Query options for all items of a list, read page by page. */
export function readAll<Id extends ListId>(id: Id, target: Omit<Target<Id>, 'page_token'>) {
  return queryOptions<ListItem<Id>[]>({
    queryKey: [id, { ...target, all: true }],
    queryFn: ({ signal }) => client.collect(id, isPaged(id) ? { ...target, limit: 500 } : target, { signal }),
    ...(isLiveList(id) && liveListOptions),
  })
}

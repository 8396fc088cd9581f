import { createClient, isApiError } from '@slipway/sdk'
import { type Query, QueryClient } from '@tanstack/react-query'
import { fetchUnlessOffline } from './connection.ts'
import { end, session } from './session.ts'

export const client = createClient({
  baseUrl: location.origin,
  token: session.token,
  onUnauthenticated: () => end('expired'),
  fetch: fetchUnlessOffline,
})

/** The client for visitors who are not signed in. */
export const visitor = createClient({ baseUrl: location.origin, fetch: fetchUnlessOffline })

export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      // The SDK already retries.
      retry: false,
      staleTime: 5_000,
      refetchOnWindowFocus: 'always',
    },
    // The library's default is to keep an offline change and send it later.
    mutations: { networkMode: 'always', retry: false },
  },
})

const refetching = new WeakSet<Query>()

/**
 * Refetches the data of all routes for which `mayHaveChanged` returns true. The library does not refetch a query
 * whose first fetch is still running. That fetch may return data from before the change, so this function refetches
 * the query when the fetch has ended.
 */
export async function refetchRoutes(mayHaveChanged: (route: unknown) => boolean): Promise<void> {
  const predicate = ({ queryKey }: Query) => mayHaveChanged(queryKey[0])
  const firstReads = queryClient
    .getQueryCache()
    .findAll({ predicate, fetchStatus: 'fetching' })
    .filter((query) => query.state.data === undefined && !refetching.has(query))
  const following = firstReads.map(async (query) => {
    refetching.add(query)
    await query.promise?.catch(() => {})
    refetching.delete(query)
    await queryClient.invalidateQueries({ queryKey: query.queryKey, exact: true })
  })
  await Promise.all([queryClient.invalidateQueries({ predicate }), ...following])
}

/** Calls the listener for every failed read. Returns a function that removes the listener. */
export const onReadError = (listener: (error: unknown) => void): (() => void) =>
  queryClient.getQueryCache().subscribe((event) => {
    if (event.type === 'updated' && event.action.type === 'error') listener(event.action.error)
  })

/** The session ends if the service no longer accepts it. A lost connection does not end it. */
onReadError((error) => {
  if (isApiError(error) && error.code === 'unauthenticated') end('expired')
})

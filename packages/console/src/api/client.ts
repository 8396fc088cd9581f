import { createClient, isApiError } from '@slipway/sdk'
import { type Query, QueryClient } from '@tanstack/react-query'
import { fetchNowOrNever } from './line.ts'
import { end, session } from './session.ts'

export const client = createClient({
  baseUrl: location.origin,
  token: session.token,
  onUnauthenticated: () => end('over'),
  fetch: fetchNowOrNever,
})

/** Client for visitors who are not signed in. */
export const visitor = createClient({ baseUrl: location.origin, fetch: fetchNowOrNever })

export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      // The SDK has retried already.
      retry: false,
      staleTime: 5_000,
      refetchOnWindowFocus: 'always',
    },
    // The library would keep a change that is made offline, and send it when the line is back.
    mutations: { networkMode: 'always', retry: false },
  },
})

const readTwice = new WeakSet<Query>()

/**
 * Reads again what may have changed. The library does so only with what was read before: a first read that is under way
 * may bring what was true before the change, so another one follows it.
 */
export async function readAgain(mayHaveChanged: (route: unknown) => boolean): Promise<void> {
  const predicate = ({ queryKey }: Query) => mayHaveChanged(queryKey[0])
  const firstReads = queryClient
    .getQueryCache()
    .findAll({ predicate, fetchStatus: 'fetching' })
    .filter((query) => query.state.data === undefined && !readTwice.has(query))
  const following = firstReads.map(async (query) => {
    readTwice.add(query)
    await query.promise?.catch(() => {})
    readTwice.delete(query)
    await queryClient.invalidateQueries({ queryKey: query.queryKey, exact: true })
  })
  await Promise.all([queryClient.invalidateQueries({ predicate }), ...following])
}

/** Reports every failed read. */
export const onReadError = (listener: (error: unknown) => void): (() => void) =>
  queryClient.getQueryCache().subscribe((event) => {
    if (event.type === 'updated' && event.action.type === 'error') listener(event.action.error)
  })

/** A refused refresh means that the session is over; a broken line does not. */
onReadError((error) => {
  if (isApiError(error) && error.code === 'unauthenticated') end('over')
})

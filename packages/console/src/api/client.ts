import { createClient, isApiError } from '@slipway/sdk'
import { QueryClient } from '@tanstack/react-query'
import { end, session } from './session.ts'

export const client = createClient({
  baseUrl: location.origin,
  token: session.token,
  onUnauthenticated: end,
})

export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      // The SDK has retried already.
      retry: false,
      staleTime: 5_000,
      refetchOnWindowFocus: 'always',
    },
  },
})

/** A refused refresh means that the session is over; a broken line does not. */
queryClient.getQueryCache().subscribe(({ query, type }) => {
  if (type === 'updated' && isApiError(query.state.error) && query.state.error.code === 'unauthenticated')
    end()
})

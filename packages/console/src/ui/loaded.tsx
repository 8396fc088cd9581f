import type { UseQueryResult } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { ErrorState } from './error.tsx'
import { Skeleton } from './page.tsx'

interface LoadedProps<Data> {
  query: Pick<UseQueryResult<Data>, 'data' | 'error' | 'refetch'>
  /** The number of rows in the skeleton. */
  rows?: number
  children: (data: Data) => ReactNode
}

/** Shows the data of a query, a skeleton while it loads, or its error. Loaded data stays visible. */
export function Loaded<Data>({ query, rows = 6, children }: LoadedProps<Data>) {
  if (query.data !== undefined) return children(query.data)
  if (query.error) return <ErrorState error={query.error} onRetry={() => query.refetch()} />
  return <Skeleton rows={rows} />
}

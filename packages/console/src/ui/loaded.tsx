import type { UseQueryResult } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { ErrorState } from './error.tsx'
import { Skeleton } from './page.tsx'

interface LoadedProps<Data> {
  query: Pick<UseQueryResult<Data>, 'data' | 'error' | 'refetch'>
  /** The skeleton has this many rows. */
  rows?: number
  children: (data: Data) => ReactNode
}

/** Shows what has been read; until then its outline, or why it could not be read. What was read once stays in sight. */
export function Loaded<Data>({ query, rows = 6, children }: LoadedProps<Data>) {
  if (query.data !== undefined) return children(query.data)
  if (query.error) return <ErrorState error={query.error} onRetry={() => query.refetch()} />
  return <Skeleton rows={rows} />
}

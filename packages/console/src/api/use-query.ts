import {
  type DefaultError,
  type QueryKey,
  type UseQueryOptions,
  type UseQueryResult,
  useQuery as useAnyQuery,
} from '@tanstack/react-query'
import { useRef } from 'react'

/**
 * This is the library's hook, but an error stays in sight while the page tries again: without it, each attempt would swap the
 * error for a skeleton and back.
 */
export function useQuery<Fetched, Data = Fetched, Key extends QueryKey = QueryKey>(
  options: UseQueryOptions<Fetched, DefaultError, Data, Key>,
): UseQueryResult<Data> {
  const query = useAnyQuery(options)
  const last = useRef<{ key: string; error: Error } | null>(null)
  const key = JSON.stringify(options.queryKey)
  if (query.error) last.current = { key, error: query.error }
  else if (query.data !== undefined || last.current?.key !== key) last.current = null
  return { ...query, error: query.error ?? last.current?.error ?? null } as UseQueryResult<Data>
}

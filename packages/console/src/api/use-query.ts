import {
  type DefaultError,
  type QueryKey,
  type UseQueryOptions,
  type UseQueryResult,
  useQuery as useAnyQuery,
} from '@tanstack/react-query'
import { useRef } from 'react'

/**
 * The library's hook, except that an error stays visible while the page retries. Otherwise, each attempt
 * would briefly replace the error with a skeleton.
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

import { useNavigate, useSearch } from '@tanstack/react-router'

/** Filters and tabs are kept in the address. An empty value is removed from it. */
export function useSearchState(): [Record<string, string>, (changes: Record<string, string>) => void] {
  const search = useSearch({ strict: false }) as Record<string, string>
  const navigate = useNavigate()
  const set = (changes: Record<string, string>) => {
    const next = Object.fromEntries(
      Object.entries({ ...search, ...changes }).filter(([, value]) => value !== ''),
    )
    void navigate({ to: '.', search: next as never, replace: true })
  }
  return [search, set]
}

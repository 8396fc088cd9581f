import { useNavigate, useSearch } from '@tanstack/react-router'
import { type RefObject, useEffect, useRef, useState } from 'react'

type Search = Record<string, string>

/** Filters and tabs are kept in the address. An empty value is removed from it. */
export function useSearchState(): [Search, (changes: Search) => void] {
  const search = useSearch({ strict: false }) as Search
  const navigate = useNavigate()
  const set = (changes: Search) => {
    // Another change may be under way, which this page does not show yet.
    const next = (before: Search) =>
      Object.fromEntries(Object.entries({ ...before, ...changes }).filter(([, value]) => value !== ''))
    void navigate({ to: '.', search: next as never, replace: true })
  }
  return [search, set]
}

interface Typed {
  ref: RefObject<HTMLInputElement | null>
  value: string
  onChange: (event: { target: { value: string } }) => void
}

/**
 * Returns the props of an input whose text is kept in the address. The address follows a moment later: while someone
 * types, the input alone knows all that was typed.
 */
export function useTyped(value: string, onChange: (value: string) => void): Typed {
  const ref = useRef<HTMLInputElement>(null)
  const [typed, setTyped] = useState(value)
  useEffect(() => {
    if (document.activeElement !== ref.current) setTyped(value)
  }, [value])
  const type = ({ target }: { target: { value: string } }) => {
    setTyped(target.value)
    onChange(target.value)
  }
  return { ref, value: typed, onChange: type }
}

import { useNavigate, useSearch } from '@tanstack/react-router'
import { type RefObject, useEffect, useRef, useState } from 'react'

type Search = Record<string, string>

/** Keeps filters and tabs in the URL. An empty value is removed. */
export function useSearchState(): [Search, (changes: Search) => void] {
  const search = useSearch({ strict: false }) as Search
  const navigate = useNavigate()
  const set = (changes: Search) => {
    // Merge with a navigation that is still in progress.
    const next = (before: Search) =>
      Object.fromEntries(Object.entries({ ...before, ...changes }).filter(([, value]) => value !== ''))
    void navigate({ to: '.', search: next as never, replace: true })
  }
  return [search, set]
}

interface UrlInputProps {
  ref: RefObject<HTMLInputElement | null>
  value: string
  onChange: (event: { target: { value: string } }) => void
}

/**
 * Returns the props of an input that keeps its text in the URL. The URL follows with a delay, so while the
 * input has the focus, its own text is the current value.
 */
export function useUrlInputProps(value: string, onChange: (value: string) => void): UrlInputProps {
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

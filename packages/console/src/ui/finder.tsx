import { type KeyboardEvent, type ReactNode, useId, useState } from 'react'
import { Icon } from './icon.tsx'

interface FinderProps<Hit> {
  label: string
  placeholder: string
  text: string
  onText: (text: string) => void
  hits: Hit[]
  keyOf: (hit: Hit) => string
  onOpen: (hit: Hit) => void
  children: (hit: Hit) => ReactNode
  /** Shown if there are no hits. */
  empty: string
}

/** A search field with a list of hits: arrow keys move the selection, Enter opens it. */
export function Finder<Hit>(props: FinderProps<Hit>) {
  const { label, placeholder, text, onText, hits, keyOf, onOpen, children, empty } = props
  const listId = useId()
  const [at, setAt] = useState(0)
  const move = (to: number) => {
    setAt(to)
    document.getElementById(`${listId}-${to}`)?.scrollIntoView({ block: 'nearest' })
  }
  const onKeyDown = (event: KeyboardEvent) => {
    const hit = hits[at]
    if (event.key === 'ArrowDown') move(Math.min(at + 1, hits.length - 1))
    else if (event.key === 'ArrowUp') move(Math.max(at - 1, 0))
    else if (event.key === 'Enter') hit !== undefined && onOpen(hit)
    else return
    event.preventDefault()
  }
  return (
    <>
      <div className="flex items-center gap-2 border-b border-line px-3">
        <Icon name="search" size={16} className="shrink-0 text-ink-muted" />
        <input
          // biome-ignore lint/a11y/noAutofocus: users open it to type
          autoFocus
          role="combobox"
          aria-label={label}
          aria-expanded="true"
          aria-controls={listId}
          aria-activedescendant={hits[at] === undefined ? undefined : `${listId}-${at}`}
          placeholder={placeholder}
          value={text}
          onChange={(event) => {
            onText(event.target.value)
            setAt(0)
          }}
          onKeyDown={onKeyDown}
          className="h-11 w-full min-w-0 bg-transparent outline-none"
        />
      </div>
      <div id={listId} role="listbox" aria-label="Results" className="max-h-[50vh] overflow-y-auto py-1">
        {hits.map((hit, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the keyboard is handled by the combobox
          // biome-ignore lint/a11y/useFocusableInteractive: the combobox keeps the focus
          <div
            key={keyOf(hit)}
            id={`${listId}-${index}`}
            role="option"
            aria-selected={index === at}
            onClick={() => onOpen(hit)}
            onMouseMove={() => setAt(index)}
            className="flex min-h-9 cursor-pointer items-center gap-3 px-3 py-1.5 aria-selected:bg-sunken"
          >
            {children(hit)}
          </div>
        ))}
      </div>
      {hits.length === 0 && <p className="px-3 pb-3 text-ink-muted">{empty}</p>}
    </>
  )
}

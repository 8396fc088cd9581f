import type { ReactNode } from 'react'
import { Icon } from './icon.tsx'

interface RowToggleProps {
  isOpen: boolean
  /** Describes the details. */
  title: string
  onToggle: () => void
  children: ReactNode
}

/** The text of a row as a button that shows and hides the details below the row. */
export const RowToggle = ({ isOpen, title, onToggle, children }: RowToggleProps) => (
  <button
    type="button"
    aria-expanded={isOpen}
    title={title}
    className="group text-left hover:text-accent-text hover:underline"
    onClick={onToggle}
  >
    {children}
    {/* The no-break space keeps the arrow on the line of the last word. */}
    <span aria-hidden="true" className="whitespace-nowrap">
      {'\u00a0'}
      <Icon
        name="chevron-down"
        size={14}
        className={`inline text-ink-muted group-hover:text-accent-text ${isOpen ? 'rotate-180' : ''}`}
      />
    </span>
  </button>
)

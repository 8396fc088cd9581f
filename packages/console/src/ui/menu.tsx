import { Menu as Base } from '@base-ui/react/menu'
import { Check } from 'lucide-react'
import type { ReactElement, ReactNode } from 'react'

interface MenuEntry {
  key: string
  label: ReactNode
  icon?: ReactNode
  onSelect: () => void
  isDanger?: boolean
  /** It is what holds now, and has a check mark. */
  isCurrent?: boolean
}

export function Menu({
  trigger,
  label,
  entries,
  header,
  align = 'end',
}: {
  trigger: ReactElement
  label: string
  entries: MenuEntry[]
  header?: ReactNode
  /** Which edges of menu and button stand one above the other. */
  align?: 'start' | 'end'
}) {
  return (
    <Base.Root>
      <Base.Trigger render={trigger as ReactElement<Record<string, unknown>>} />
      <Base.Portal>
        <Base.Positioner sideOffset={6} align={align} className="z-50">
          <Base.Popup
            aria-label={label}
            className="max-h-[70vh] min-w-48 overflow-y-auto rounded-md border border-line-strong bg-surface py-1 shadow-float outline-none"
          >
            {header && <div className="border-b border-line px-3 py-2 text-sm text-ink-muted">{header}</div>}
            {entries.map((entry) => (
              <Base.Item
                key={entry.key}
                onClick={entry.onSelect}
                className={`flex min-h-8 cursor-pointer items-center py-1 gap-2 px-3 outline-none select-none data-highlighted:bg-sunken ${entry.isDanger ? 'text-red-text' : ''} ${entry.isCurrent ? 'font-medium' : ''}`}
              >
                {entry.icon}
                {entry.label}
                {entry.isCurrent && (
                  <Check size={14} aria-label="current" className="ml-auto shrink-0 text-accent-text" />
                )}
              </Base.Item>
            ))}
          </Base.Popup>
        </Base.Positioner>
      </Base.Portal>
    </Base.Root>
  )
}

import { Menu as Base } from '@base-ui/react/menu'
import { Fragment, type ReactElement, type ReactNode } from 'react'
import { Icon } from './icon.tsx'

interface MenuEntry {
  key: string
  label: ReactNode
  icon?: ReactNode
  onSelect: () => void
  isDanger?: boolean
  /** Draws a separator above the entry. */
  hasSeparator?: boolean
  /** Marks the current choice with a check mark. */
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
  /** Which edges of the menu and its button are aligned. */
  align?: 'start' | 'end'
}) {
  return (
    <Base.Root>
      <Base.Trigger render={trigger as ReactElement<Record<string, unknown>>} />
      <Base.Portal>
        <Base.Positioner sideOffset={6} align={align} className="z-50">
          <Base.Popup
            aria-label={label}
            className="max-h-[70vh] max-w-[calc(100vw-16px)] min-w-48 overflow-y-auto rounded-md border border-line-strong bg-surface py-1 shadow-float outline-none"
          >
            {header && <div className="border-b border-line px-3 py-2 text-sm text-ink-muted">{header}</div>}
            {entries.map((entry) => (
              <Fragment key={entry.key}>
                {entry.hasSeparator && <Base.Separator className="my-1 border-t border-line" />}
                <Base.Item
                  onClick={entry.onSelect}
                  className={`flex min-h-8 cursor-pointer items-center gap-2 px-3 py-1 outline-none select-none data-highlighted:bg-sunken ${entry.isDanger ? 'text-red-text' : ''} ${entry.isCurrent ? 'font-medium' : ''}`}
                >
                  {entry.icon}
                  {entry.label}
                  {entry.isCurrent && (
                    <Icon
                      name="check"
                      size={14}
                      aria-label="current"
                      className="ml-auto shrink-0 text-accent-text"
                    />
                  )}
                </Base.Item>
              </Fragment>
            ))}
          </Base.Popup>
        </Base.Positioner>
      </Base.Portal>
    </Base.Root>
  )
}

import { Tooltip } from '@base-ui/react/tooltip'
import type { ReactElement } from 'react'

export function Hint({ text, children }: { text: string; children: ReactElement }) {
  return (
    <Tooltip.Root>
      <Tooltip.Trigger render={children as ReactElement<Record<string, unknown>>} delay={250} />
      <Tooltip.Portal>
        <Tooltip.Positioner sideOffset={6} className="z-60">
          <Tooltip.Popup className="max-w-72 rounded-md border border-line-strong bg-surface px-2 py-1 text-sm text-ink shadow-float">
            {text}
          </Tooltip.Popup>
        </Tooltip.Positioner>
      </Tooltip.Portal>
    </Tooltip.Root>
  )
}

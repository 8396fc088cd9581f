import { Tooltip } from '@base-ui/react/tooltip'
import { type ReactElement, useState } from 'react'

interface HintProps {
  /** No hint is shown if this is empty. */
  text: string
  /** Also opens on press, for touch screens. Used for disabled buttons, which do nothing else. */
  opensOnPress?: boolean
  children: ReactElement
}

export function Hint({ text, opensOnPress = false, children }: HintProps) {
  const [isOpen, setOpen] = useState(false)
  return (
    <Tooltip.Root open={isOpen} onOpenChange={setOpen} disabled={!text}>
      <Tooltip.Trigger
        render={children as ReactElement<Record<string, unknown>>}
        delay={250}
        closeOnClick={!opensOnPress}
        onClick={() => opensOnPress && text && setOpen(true)}
      />
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

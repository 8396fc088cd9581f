import { Tabs } from '@base-ui/react/tabs'
import { useRef, useState } from 'react'
import type { Commands } from '../lib/shell.ts'
import { useScrollEdges } from './columns/scroll-edges.ts'
import { CopyButton } from './copy.tsx'
import { Sentence } from './no-break.tsx'

const tab =
  'h-7 shrink-0 px-2 text-sm text-ink-muted rounded-[4px] hover:text-ink data-active:text-ink data-active:bg-surface data-active:font-medium'

/** The commands that are equivalent to a page. */
export const CommandLines = ({ cli, curl, terraform = '' }: Commands) => (
  <CommandTabs
    label="Command line"
    lines={[
      ['CLI', cli],
      ...(terraform ? ([['Terraform', terraform]] satisfies [string, string][]) : []),
      ['curl', curl],
    ]}
  />
)

/** The commands that are equivalent to a dialog, shown on demand. */
export function ShowAs({ commands }: { commands: Commands }) {
  // The commands for thousands of VMs are long, so they are in the page only while they are shown.
  const [isOpen, setOpen] = useState(false)
  return (
    <details className="text-sm" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary className="cursor-pointer text-ink-muted hover:text-ink">
        Show as CLI{commands.terraform ? ', Terraform' : ''} or curl
      </summary>
      {isOpen && (
        <div className="mt-2">
          <CommandLines {...commands} />
        </div>
      )}
    </details>
  )
}

/** Wraps a single line. A command on several lines scrolls, because its line breaks have a meaning. */
function Command({ text }: { text: string }) {
  const frame = useRef<HTMLPreElement>(null)
  useScrollEdges(frame)
  const look = text.includes('\n') ? 'whitespace-pre' : 'wrap-anywhere whitespace-pre-wrap'
  return (
    <div className="cut-edges [--fade:var(--sunken)]">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard */}
      <pre ref={frame} tabIndex={0} className={`mono overflow-x-auto text-ink ${look}`}>
        {/* Browsers break lines at hyphens, which would split an option. */}
        {text.includes('\n') ? text : <Sentence text={text} />}
      </pre>
    </div>
  )
}

/** Shows commands in tabs, with a copy button. */
export function CommandTabs({ label, lines }: { label: string; lines: [name: string, text: string][] }) {
  const list = useRef<HTMLDivElement>(null)
  useScrollEdges(list)
  return (
    <Tabs.Root
      defaultValue={lines[0]?.[0]}
      className="overflow-hidden rounded-md border border-line bg-sunken text-left"
    >
      <div className="border-b border-line pr-9">
        <div className="cut-edges [--fade:var(--sunken)]">
          <Tabs.List
            ref={list}
            className="flex items-center gap-1 overflow-x-auto py-1 pl-2"
            aria-label={label}
          >
            {lines.map(([name]) => (
              <Tabs.Tab key={name} value={name} className={tab}>
                <span className="tab-words" data-words={name}>
                  {name}
                </span>
              </Tabs.Tab>
            ))}
          </Tabs.List>
        </div>
      </div>
      {lines.map(([name, text]) => (
        <Tabs.Panel key={name} value={name} className="relative px-3 py-2">
          <Command text={text} />
          {/* The button is in the row of the tabs, so that the command has the full width. */}
          <span className="absolute -top-[29px] right-2 flex">
            <CopyButton text={text} label="Copy the command" />
          </span>
        </Tabs.Panel>
      ))}
    </Tabs.Root>
  )
}

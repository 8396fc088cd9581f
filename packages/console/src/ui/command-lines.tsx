import { Tabs } from '@base-ui/react/tabs'
import { CopyButton } from './copy.tsx'

const tab =
  'h-7 shrink-0 px-2 text-sm text-ink-muted rounded-[4px] hover:text-ink data-active:text-ink data-active:bg-surface data-active:font-medium'

/** Shows how to do the same from a terminal. */
export const CommandLines = ({ cli, curl }: { cli: string; curl: string }) => (
  <PasteLines
    label="Command line"
    lines={[
      ['CLI', cli],
      ['curl', curl],
    ]}
  />
)

/** Shows lines to paste, each under its own tab, with a button that copies those in sight. */
export function PasteLines({ label, lines }: { label: string; lines: [name: string, text: string][] }) {
  return (
    <Tabs.Root
      defaultValue={lines[0]?.[0]}
      className="overflow-hidden rounded-md border border-line bg-sunken text-left"
    >
      <Tabs.List
        className="flex items-center gap-1 overflow-x-auto border-b border-line py-1 pr-9 pl-2"
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
      {lines.map(([name, text]) => (
        <Tabs.Panel key={name} value={name} className="relative px-3 py-2">
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard */}
          <pre tabIndex={0} className="mono overflow-x-auto whitespace-pre">
            {text}
          </pre>
          {/* The button stands in the row of the tabs, so that the command has the whole width. */}
          <span className="absolute -top-8 right-2">
            <CopyButton text={text} label="Copy the command" />
          </span>
        </Tabs.Panel>
      ))}
    </Tabs.Root>
  )
}

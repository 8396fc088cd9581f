import { Tabs } from '@base-ui/react/tabs'
import { CopyButton } from './copy.tsx'

const tab =
  'h-7 px-2 text-sm text-ink-muted rounded-[4px] hover:text-ink data-active:text-ink data-active:bg-surface data-active:font-medium'

/** Shows how to do the same from a terminal. */
export function CommandLines({ cli, curl }: { cli: string; curl: string }) {
  return (
    <Tabs.Root
      defaultValue="cli"
      className="overflow-hidden rounded-md border border-line bg-sunken text-left"
    >
      <Tabs.List className="flex items-center gap-1 border-b border-line px-2 py-1" aria-label="Command line">
        <Tabs.Tab value="cli" className={tab}>
          CLI
        </Tabs.Tab>
        <Tabs.Tab value="curl" className={tab}>
          curl
        </Tabs.Tab>
      </Tabs.List>
      <Line value="cli" text={cli} />
      <Line value="curl" text={curl} />
    </Tabs.Root>
  )
}

function Line({ value, text }: { value: string; text: string }) {
  return (
    <Tabs.Panel value={value} className="relative px-3 py-2">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard */}
      <pre tabIndex={0} className="mono overflow-x-auto whitespace-pre">
        {text}
      </pre>
      {/* The button stands in the row of the tabs, so that the command has the whole width. */}
      <span className="absolute -top-8 right-2">
        <CopyButton text={text} label="Copy the command" />
      </span>
    </Tabs.Panel>
  )
}

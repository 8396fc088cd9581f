import { Tabs } from '@base-ui/react/tabs'
import { CopyButton } from './copy.tsx'

interface TabText {
  name: string
  /** The text that the copy button copies. */
  text: string
  /** The label of the copy button. */
  copyLabel: string
  /** The text in a form that is easier to read. */
  shown: string
  /** Replaces an empty text. */
  empty: string
}

const tab =
  'h-7 shrink-0 rounded-[4px] px-2 text-sm text-ink-muted hover:text-ink data-active:bg-surface data-active:font-medium data-active:text-ink'

/** Long texts in tabs, each with a copy button. */
export const TextTabs = ({ label, texts }: { label: string; texts: TabText[] }) => (
  <Tabs.Root
    defaultValue={0}
    className="overflow-hidden rounded-md border border-line bg-sunken text-left font-normal"
  >
    <Tabs.List className="flex items-center gap-1 border-b border-line py-1 pr-9 pl-2" aria-label={label}>
      {texts.map(({ name }, index) => (
        <Tabs.Tab key={name} value={index} className={tab}>
          {name}
        </Tabs.Tab>
      ))}
    </Tabs.List>
    {texts.map(({ name, text, copyLabel, shown, empty }, index) => (
      <Tabs.Panel key={name} value={index} className="relative px-3 py-2">
        {text === '' ? (
          <p className="text-ink-muted">{empty}</p>
        ) : (
          <>
            {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard */}
            <pre tabIndex={0} className="mono max-h-140 overflow-auto break-all whitespace-pre-wrap">
              {shown}
            </pre>
            <span className="absolute -top-8 right-2">
              <CopyButton text={text} label={copyLabel} />
            </span>
          </>
        )}
      </Tabs.Panel>
    ))}
  </Tabs.Root>
)

import { useReachability } from '../api/connection.ts'
import { useMe } from '../api/me.ts'
import { destinations } from '../lib/destinations.ts'
import { timeZone } from '../lib/format.ts'
import { Dialog } from '../ui/dialog.tsx'
import { guides, guidesUrl } from './guides.ts'

const keysFor = (isOperator: boolean): [string, string][] => [
  ['/', 'Search VMs, disks and pages'],
  ['c', 'Create a VM'],
  ...Object.entries(destinations).map(([key, { name }]): [string, string] => [`g ${key}`, `Go to ${name}`]),
  ...(isOperator ? [['g f', 'Go to Fleet'] satisfies [string, string]] : []),
  ['?', 'Show this help'],
  ['Esc', 'Close the dialog or menu'],
]

export default function Help({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }) {
  const { isLost } = useReachability()
  const { caller } = useMe()
  return (
    <Dialog isOpen={isOpen} onClose={onClose} title="Help">
      {/* Phones have no keyboard. */}
      <section className="mb-4 max-md:hidden">
        <h3 className="mb-1 font-medium">Keyboard shortcuts</h3>
        <dl className="grid grid-cols-[72px_1fr] gap-y-1">
          {keysFor(caller.is_operator).map(([key, what]) => (
            <div key={key} className="contents">
              <dt>
                <kbd className="rounded-[4px] border border-line-strong bg-sunken px-1.5 font-mono text-xs">
                  {key}
                </kbd>
              </dt>
              <dd>{what}</dd>
            </div>
          ))}
        </dl>
      </section>
      <h3 className="mb-1 font-medium">Status</h3>
      <p className="text-ink-muted">
        {isLost ? 'Slipway is not responding.' : 'Slipway is responding normally.'} Times are shown in{' '}
        {timeZone}
        {timeZone !== 'UTC' && ', with UTC on hover'}. Alerts about your resources are under the bell icon.
      </p>
      <h3 className="mt-4 mb-1 font-medium">Guides</h3>
      <ul className="grid gap-x-4 gap-y-1 sm:grid-cols-2">
        {Object.entries(guides).map(([file, title]) => (
          <li key={file}>
            <a className="link" href={`${guidesUrl}/${file}.md`} target="_blank" rel="noreferrer">
              {title}
            </a>
          </li>
        ))}
      </ul>
      <h3 className="mt-4 mb-1 font-medium">API</h3>
      <p className="text-ink-muted">
        Everything in the console is also available through the public API.{' '}
        <a className="link" href="/docs">
          API reference
        </a>
        {' · '}
        <a className="link" href="/openapi.json">
          OpenAPI document
        </a>
      </p>
    </Dialog>
  )
}

import { Fragment } from 'react'

const texts: [action: string, text: string][] = [
  ['Cordon', 'The host accepts no new VMs. Its VMs keep running, and no tenant is notified.'],
  ['Drain', 'Like Cordon, but tenants also see an alert. The host is drained when its last VM is deleted.'],
  ['Forget', 'For a host that is down and will not come back. Its VMs and their data are permanently lost.'],
  ['Remove', 'For a host without VMs. Removes it and its GPUs from the fleet. You can register it again.'],
]

/** Explains the host actions. */
export const HostActionHelp = () => (
  <details className="card px-4 py-3">
    <summary className="cursor-pointer font-medium">What these actions do</summary>
    <dl className="mt-2 grid gap-x-4 gap-y-1 sm:grid-cols-[100px_1fr]">
      {texts.map(([action, text]) => (
        <Fragment key={action}>
          <dt className="font-medium">{action}</dt>
          <dd className="text-ink-muted">{text}</dd>
        </Fragment>
      ))}
    </dl>
  </details>
)

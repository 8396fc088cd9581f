import { lazy, type ReactNode, Suspense, useState } from 'react'
import { useProject, useWhyNot } from '../api/me.ts'
import { read, readAll } from '../api/read.ts'
import { useQuery } from '../api/use-query.ts'
import { Button, ButtonLink, IconButton } from '../ui/button.tsx'
import { Icon } from '../ui/icon.tsx'
import { BillingButton } from './billing-button.tsx'

/** Loaded on demand, because most visits to the first page do not need it. */
const AddSshKey = lazy(async () => ({ default: (await import('./add-ssh-key.tsx')).AddSshKey }))

const hiddenKey = (organizationId: string) => `slipway-getting-started-hidden-${organizationId}`

interface Step {
  text: string
  note?: string
  isDone: boolean
  /** The button for this step, if the step is possible. */
  action: ReactNode
}

/**
 * The getting-started list of a new organization. Once a VM exists, only the open steps are shown, in one row. It
 * disappears when all steps are done.
 */
export function GettingStarted({ hasCard }: { hasCard: boolean }) {
  const { id: projectId, organization_id } = useProject()
  const params = { project_id: projectId }
  const [isHidden, setHidden] = useState(() => localStorage.getItem(hiddenKey(organization_id)) !== null)
  const [isAddingKey, setAddingKey] = useState(false)
  const whyNoKey = useWhyNot('member')
  const whyNoCard = useWhyNot('owner')
  const keys = useQuery(readAll('sshKeyList', params))
  const vms = useQuery({ ...readAll('vmList', params), enabled: hasCard })
  const budget = useQuery({ ...read('budgetGet', { params }), enabled: hasCard })
  if (!keys.data || (hasCard && (whyNoKey || !vms.data || !budget.data))) return null
  const hasVm = (vms.data?.length ?? 0) > 0
  const hasKey = keys.data.length > 0 || hasVm
  const hasBudget = typeof budget.data?.monthly_usd === 'number'
  if ((hasVm && hasBudget) || (hasVm && isHidden)) return null
  const kindOf = (isNext: boolean) => (isNext ? 'primary' : 'plain')
  const steps: Step[] = [
    {
      text: 'Add a payment method',
      note: 'Billing opens in a new tab. This page updates automatically after you add a card.',
      isDone: hasCard,
      action: <BillingButton reason={whyNoCard} />,
    },
    {
      text: 'Add your SSH key',
      isDone: hasKey,
      action: (
        <Button kind={kindOf(hasCard && !hasKey)} reason={whyNoKey} onClick={() => setAddingKey(true)}>
          Add SSH key
        </Button>
      ),
    },
    {
      text: 'Create a VM (about a minute)',
      isDone: hasVm,
      action: hasCard && (
        <ButtonLink kind={kindOf(hasKey)} to="/projects/$projectId/vms/new" params={{ projectId }}>
          Create VM
        </ButtonLink>
      ),
    },
    {
      text: 'Set a budget to get alerts about unexpected costs',
      isDone: hasBudget,
      action: hasCard && (
        <ButtonLink
          size={hasVm ? 'small' : 'normal'}
          to="/projects/$projectId/settings/billing"
          params={{ projectId }}
        >
          Set a budget
        </ButtonLink>
      ),
    },
  ]
  const next = steps.findIndex(({ isDone }) => !isDone)
  if (hasVm)
    return (
      <section aria-label="Getting started" className="card flex items-center gap-3 px-4 py-1.5">
        <ul className="flex flex-1 flex-wrap gap-x-6 gap-y-1">
          {steps
            .filter(({ isDone }) => !isDone)
            .map(({ text, action }) => (
              <li key={text} className="flex flex-wrap items-center gap-x-4 gap-y-1">
                {text}
                {action}
              </li>
            ))}
        </ul>
        <IconButton
          label="Hide the getting-started list"
          icon={<Icon name="x" size={14} />}
          onClick={() => {
            localStorage.setItem(hiddenKey(organization_id), '1')
            setHidden(true)
          }}
        />
      </section>
    )
  return (
    <section aria-label="Getting started" className="card">
      {hasCard && <h2 className="border-b border-line px-4 py-2.5 font-semibold">Getting started</h2>}
      <ol className="divide-y divide-line">
        {steps.map(({ text, note, isDone, action }, index) => (
          <li key={text} className="flex gap-3 px-4 py-2">
            <span className="flex h-8 items-center">
              <span
                className={`figures flex size-5 items-center justify-center rounded-full border text-xs ${isDone ? 'border-transparent text-green-text' : index === next ? 'border-accent font-medium text-accent-text' : 'border-line-strong text-ink-muted'}`}
              >
                {isDone ? <Icon name="check" size={14} aria-label="done" /> : index + 1}
              </span>
            </span>
            <span className="flex min-w-0 flex-1 flex-wrap items-center gap-x-4 gap-y-1">
              <span className={`flex-[1_1_200px] py-1.5 ${isDone || !action ? 'text-ink-muted' : ''}`}>
                {text}
                {note && !isDone && <span className="block text-sm text-ink-muted">{note}</span>}
              </span>
              {!isDone && action}
            </span>
          </li>
        ))}
      </ol>
      {isAddingKey && (
        <Suspense>
          <AddSshKey projectId={projectId} onClose={() => setAddingKey(false)} />
        </Suspense>
      )}
    </section>
  )
}

import { Link } from '@tanstack/react-router'
import { Check } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { useProject, useWhyNot } from '../api/me.ts'
import { read, readAll } from '../api/read.ts'
import { useQuery } from '../api/use-query.ts'
import { IconButton } from '../ui/button.tsx'

const hiddenKey = (organizationId: string) => `slipway-first-steps-hidden-${organizationId}`

/** Leads a new organization from a card to a VM with a budget, and is gone when all of it is done. */
export function FirstSteps({ hasCard }: { hasCard: boolean }) {
  const { id: project_id, organization_id } = useProject()
  const projectId = project_id
  const [isHidden, setHidden] = useState(() => localStorage.getItem(hiddenKey(organization_id)) !== null)
  const mayNot = useWhyNot('member')
  const keys = useQuery(readAll('sshKeyList', { project_id }))
  const vms = useQuery({ ...readAll('vmList', { project_id }), enabled: hasCard })
  const budget = useQuery({ ...read('budgetGet', { params: { project_id } }), enabled: hasCard })
  if (mayNot || !keys.data || (hasCard && !(vms.data && budget.data))) return null
  const hasVm = (vms.data?.length ?? 0) > 0
  const hasBudget = typeof budget.data?.monthly_usd === 'number'
  if ((hasVm && hasBudget) || (hasVm && isHidden)) return null
  const steps: { words: string; isDone: boolean; way: ReactNode }[] = [
    // While it is missing, the page around this one has the button.
    { words: 'Add a payment method', isDone: hasCard, way: null },
    {
      words: 'Add the SSH key that you will sign in with',
      isDone: keys.data.length > 0 || hasVm,
      way: (
        <Link to="/projects/$projectId/settings/ssh-keys" params={{ projectId }} className="link">
          SSH keys
        </Link>
      ),
    },
    {
      words: 'Create a VM; it takes a minute',
      isDone: hasVm,
      way: hasCard && (
        <Link to="/projects/$projectId/vms/new" params={{ projectId }} className="link">
          Create VM
        </Link>
      ),
    },
    {
      words: 'Set a budget, so that a forgotten VM cannot surprise you',
      isDone: hasBudget,
      way: hasCard && (
        <Link to="/projects/$projectId/settings/billing" params={{ projectId }} className="link">
          Set a budget
        </Link>
      ),
    },
  ]
  const next = steps.findIndex(({ isDone }) => !isDone)
  return (
    <section aria-label="First steps" className="card px-4 py-3">
      <div className="flex items-center justify-between gap-4">
        <h2 className="font-semibold">
          {hasCard && !hasVm ? 'Nothing runs here yet. First steps:' : 'First steps'}
        </h2>
        {hasVm && (
          <IconButton
            label="Hide the first steps"
            icon={<Check size={14} />}
            onClick={() => {
              localStorage.setItem(hiddenKey(organization_id), '1')
              setHidden(true)
            }}
          />
        )}
      </div>
      <ol className="mt-2 flex flex-col gap-1">
        {steps.map(({ words, isDone, way }, index) => (
          <li key={words} className="flex min-h-8 items-center gap-3">
            <span
              className={`figures flex size-5 shrink-0 items-center justify-center rounded-full border text-xs ${isDone ? 'border-transparent text-green-text' : index === next ? 'border-accent font-medium text-accent-text' : 'border-line-strong text-ink-muted'}`}
            >
              {isDone ? <Check size={14} aria-label="done" /> : index + 1}
            </span>
            <span className={`min-w-0 flex-1 ${isDone || index !== next ? 'text-ink-muted' : ''}`}>
              {words}
            </span>
            {!isDone && way}
          </li>
        ))}
      </ol>
    </section>
  )
}

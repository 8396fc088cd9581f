import type { Operation, OperationStep } from '@slipway/sdk'
import { read } from '../api/read.ts'
import { useQuery } from '../api/use-query.ts'
import { changeText } from '../lib/format.ts'
import { Copyable } from '../ui/copy.tsx'
import { Icon } from '../ui/icon.tsx'
import { StateBadge } from '../ui/state.tsx'
import { Elapsed } from '../ui/time.tsx'
import { operationStepText } from './activity/step-texts.ts'

export const operationText = ({ metadata }: Operation): string =>
  changeText(metadata.operation_name, metadata.type)

/** Shows an operation with its steps and their durations. */
export function Steps({ projectId, operation }: { projectId: string; operation: Operation }) {
  const isRunning = operation.state === 'IN_PROGRESS'
  const steps = useQuery({
    ...read('operationSteps', { params: { project_id: projectId, operation_id: operation.operation_id } }),
    refetchInterval: isRunning ? 500 : false,
  })
  const failure =
    operation.state === 'FAILED' ? (operation.result as { code?: string; message?: string } | null) : null
  return (
    <section aria-label={operationText(operation)} className="card px-4 py-3" aria-live="polite">
      <div className="flex flex-wrap items-center gap-x-4 gap-y-1">
        <span className="font-medium">{operationText(operation)}</span>
        <StateBadge state={operation.state} />
        {/* The row of a completed operation shows the time until its last event, which is slightly different. */}
        {isRunning && <Elapsed from={operation.started_at} to={operation.completed_at} />}
      </div>
      {failure && (
        <p className="mt-2 text-red-text">
          {failure.message} <span className="mono text-ink-muted">{failure.code}</span>
        </p>
      )}
      <StepList steps={steps.data?.items ?? []} />
      <p className="mt-1 flex flex-wrap items-center gap-x-2 text-sm text-ink-muted">
        Operation ID <Copyable text={operation.operation_id} />
      </p>
    </section>
  )
}

export const StepList = ({ steps }: { steps: OperationStep[] }) => (
  <ol className="mt-2 flex max-w-xl flex-col">
    {steps.map((step) => (
      <li key={step.name} className="flex min-h-7 items-center gap-3 py-0.5 [&>svg]:shrink-0">
        <StepMark state={step.state} />
        <span className={step.state === 'pending' ? 'text-ink-muted' : ''}>
          {operationStepText(step.name)}
        </span>
        <span className="ml-auto text-sm whitespace-nowrap">
          <Elapsed from={step.started_at} to={step.completed_at} />
        </span>
      </li>
    ))}
  </ol>
)

function StepMark({ state }: { state: OperationStep['state'] }) {
  const size = 14
  switch (state) {
    case 'done':
      return <Icon name="check" size={size} className="text-green-text" aria-label="done" />
    case 'running':
      return (
        <Icon name="loader-circle" size={size} className="animate-spin text-blue-text" aria-label="running" />
      )
    case 'failed':
      return <Icon name="x" size={size} className="text-red-text" aria-label="failed" />
    case 'undone':
      return <Icon name="undo-2" size={size} className="text-ink-muted" aria-label="undone" />
    case 'pending':
      return <Icon name="circle" size={size} className="text-line-strong" aria-label="pending" />
  }
}

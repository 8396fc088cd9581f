import type { OperationStep } from '@slipway/sdk'
import { useParams } from '@tanstack/react-router'
import { useState } from 'react'
import { read, readAll } from '../../api/read.ts'
import { useQuery } from '../../api/use-query.ts'
import { operationStepText } from '../../features/activity/step-texts.ts'
import { settingsPollMs } from '../../features/fleet/poll.ts'
import { projectText } from '../../features/fleet/project-picker.tsx'
import { AbandonDialog, StuckActions } from '../../features/fleet/stuck-actions.tsx'
import { TenantVmLink } from '../../features/fleet/tenant-vm-link.tsx'
import { operationText, StepList } from '../../features/steps.tsx'
import { count, shortId } from '../../lib/format.ts'
import { Copyable } from '../../ui/copy.tsx'
import { ErrorState } from '../../ui/error.tsx'
import { Facts, Page, Section, Skeleton } from '../../ui/page.tsx'
import { StateBadge } from '../../ui/state.tsx'
import { Timestamp, Until } from '../../ui/time.tsx'

const trail: [string, string][] = [
  ['Fleet', '/fleet'],
  ['Operations', '/fleet/operations'],
]

/** An operation of a tenant: its steps, failed attempts, last error and next attempt. */
export function FleetOperation() {
  const { operationId = '' } = useParams({ strict: false })
  const query = useQuery({
    ...read('adminOperationGet', { params: { operation_id: operationId } }),
    // Each read is recorded in the tenant's audit log, so a stuck operation is read again only after its next attempt.
    refetchInterval: ({ state: { data } }) =>
      data?.state !== 'IN_PROGRESS'
        ? false
        : data.is_stuck
          ? Math.max(settingsPollMs, Date.parse(data.next_attempt_at || '0') - Date.now())
          : settingsPollMs,
  })
  const projects = useQuery(readAll('adminProjectList', {}))
  const [isAbandoning, setAbandoning] = useState(false)
  const operation = query.data
  if (!operation)
    return (
      <Page title="Operation" trail={trail}>
        {query.error ? <ErrorState error={query.error} onRetry={() => query.refetch()} /> : <Skeleton />}
      </Page>
    )
  const { metadata, resource_name, project_id, is_stuck, state, step, attempts, error } = operation
  const project = projects.data?.find(({ id }) => id === project_id)
  const name = resource_name || `…${shortId(metadata.id)}`
  const result = state === 'FAILED' ? (operation.result as { message?: string } | null) : null
  const lastError = result?.message ?? error
  return (
    <Page
      title={`${operationText(operation)} ${name}`}
      trail={trail}
      aside={<StateBadge state={is_stuck ? 'stuck' : state} />}
      actions={is_stuck && <StuckActions operation={operation} onAbandon={() => setAbandoning(true)} />}
    >
      {lastError && (
        <div role="status" className="card px-4 py-3">
          <p className="font-medium">Last error</p>
          <p className="break-words text-red-text">{lastError}</p>
        </div>
      )}
      <Facts
        items={[
          [
            'Resource',
            metadata.type === 'vm' ? <TenantVmLink key="vm" vm={{ id: metadata.id, name }} /> : name,
          ],
          ['Project', project ? projectText(project) : `…${shortId(project_id)}`],
          ['Current step', step ? operationStepText(step) : 'none'],
          ['Failed attempts', count(attempts)],
          ['Next attempt', <NextAttempt key="next" operation={operation} />],
          ['Started', <Timestamp key="started" iso={operation.started_at} />],
          ['Completed', <Timestamp key="completed" iso={operation.completed_at} />],
          ['ID', <Copyable key="id" text={operation.operation_id} />],
        ]}
      />
      <Section title="Steps">
        <div className="card px-4 pt-1 pb-3">
          <StepList steps={operation.steps.map((each) => (each.name === step ? markRunning(each) : each))} />
        </div>
      </Section>
      {isAbandoning && <AbandonDialog operation={operation} onClose={() => setAbandoning(false)} />}
    </Page>
  )
}

/** A step whose first attempt failed is not recorded yet, but is the current step. */
const markRunning = (step: OperationStep): OperationStep =>
  step.state === 'pending' ? { ...step, state: 'running' } : step

function NextAttempt({ operation }: { operation: { state: string; next_attempt_at: string } }) {
  if (operation.state !== 'IN_PROGRESS') return 'none'
  return operation.next_attempt_at ? <Until iso={operation.next_attempt_at} /> : 'in progress'
}

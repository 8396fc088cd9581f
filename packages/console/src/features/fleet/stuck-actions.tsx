import type { RouteResponse } from '@slipway/sdk'
import { useAction } from '../../api/actions.ts'
import { client } from '../../api/client.ts'
import { readAll } from '../../api/read.ts'
import { useQuery } from '../../api/use-query.ts'
import { shortId } from '../../lib/format.ts'
import { operatorCommands } from '../../lib/shell.ts'
import { Button } from '../../ui/button.tsx'
import { Confirm, submitProps } from '../../ui/dialog.tsx'
import { operationText } from '../steps.tsx'
import { projectText } from './project-picker.tsx'

export type AdminOperation = RouteResponse<'adminOperationList'>['items'][number]

interface StuckActionsProps {
  operation: AdminOperation
  onRetried?: () => void
  /** Opens the confirmation, which the page shows outside of its table. */
  onAbandon: () => void
  isSmall?: boolean
}

/** Retries or abandons a stuck operation. */
export function StuckActions({ operation, onRetried, onAbandon, isSmall = false }: StuckActionsProps) {
  const target = { operation_id: operation.operation_id }
  const text = operationText(operation)
  const retry = useAction({
    run: () => client.adminOperationRetry(target),
    done: () => `Retrying: ${text}`,
    failed: () => `Could not retry: ${text}`,
    invalidates: ['adminOperationList', 'adminOperationGet'],
  })
  const size = isSmall ? { size: 'small' as const } : {}
  return (
    <>
      <Button
        {...size}
        isBusy={retry.isPending}
        onClick={() => {
          onRetried?.()
          retry.mutate(undefined)
        }}
      >
        Retry
      </Button>
      <Button {...size} kind="danger" onClick={onAbandon}>
        Abandon
      </Button>
    </>
  )
}

/** Asks for confirmation before an operator abandons a stuck operation. */
export function AbandonDialog({ operation, onClose }: { operation: AdminOperation; onClose: () => void }) {
  const { operation_id, metadata, project_id } = operation
  const name = operation.resource_name || `…${shortId(metadata.id)}`
  const text = `${operationText(operation)} ${name}`
  const projects = useQuery(readAll('adminProjectList', {}))
  const project = projects.data?.find(({ id }) => id === project_id)
  const abandon = useAction({
    run: () => client.adminOperationAbandon({ operation_id }),
    done: () => `Abandoned: ${text}`,
    invalidates: ['adminOperationList', 'adminOperationGet'],
    showsErrors: true,
  })
  return (
    <Confirm
      isOpen
      onClose={onClose}
      title={`Abandon the operation “${text}”`}
      action="Abandon operation"
      commands={operatorCommands({
        cli: `slipway admin operation abandon ${operation_id}`,
        path: `/operations/${operation_id}/abandon`,
      })}
      {...submitProps(abandon, undefined, onClose)}
    >
      <p>
        {name} belongs to {project ? projectText(project) : `the project …${shortId(project_id)}`}. The
        operation will be marked as failed. Resources that it could not remove may need manual cleanup.
      </p>
    </Confirm>
  )
}

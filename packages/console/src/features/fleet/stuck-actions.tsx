import type { RouteResponse } from '@slipway/sdk'
import { useState } from 'react'
import { useAction } from '../../api/actions.ts'
import { client } from '../../api/client.ts'
import { operatorCommands } from '../../lib/shell.ts'
import { Button } from '../../ui/button.tsx'
import { Confirm, submitProps } from '../../ui/dialog.tsx'
import { operationText } from '../steps.tsx'

export type AdminOperation = RouteResponse<'adminOperationList'>['items'][number]

interface StuckActionsProps {
  operation: AdminOperation
  onRetried?: () => void
  isSmall?: boolean
}

/** Retries or abandons a stuck operation. */
export function StuckActions({ operation, onRetried, isSmall = false }: StuckActionsProps) {
  const [isAbandoning, setAbandoning] = useState(false)
  const target = { operation_id: operation.operation_id }
  const text = operationText(operation)
  const retry = useAction({
    run: () => client.adminOperationRetry(target),
    done: () => `Retrying: ${text}`,
    failed: () => `Could not retry: ${text}`,
    invalidates: ['adminOperationList', 'adminOperationGet'],
  })
  const abandon = useAction({
    run: () => client.adminOperationAbandon(target),
    done: () => `Abandoned: ${text}`,
    invalidates: ['adminOperationList', 'adminOperationGet'],
    showsErrors: true,
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
      <Button {...size} kind="danger" onClick={() => setAbandoning(true)}>
        Abandon
      </Button>
      {isAbandoning && (
        <Confirm
          isOpen
          onClose={() => setAbandoning(false)}
          title={`Abandon the operation “${text}”`}
          action="Abandon operation"
          commands={operatorCommands({
            cli: `slipway admin operation abandon ${operation.operation_id}`,
            path: `/operations/${operation.operation_id}/abandon`,
          })}
          {...submitProps(abandon, undefined, () => setAbandoning(false))}
        >
          <p>
            The operation will be marked as failed. Resources that it could not remove may need manual
            cleanup.
          </p>
        </Confirm>
      )}
    </>
  )
}

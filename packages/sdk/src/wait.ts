import type { Operation, OperationStep } from '@slipway/contract'
import { callRoute } from './call.ts'
import { ApiError, errorOfOperation } from './errors.ts'
import type { Transport } from './transport.ts'

export interface WaitOptions {
  signal?: AbortSignal | undefined
  /** Stop waiting after this time (default: never). The operation itself continues. */
  timeoutMs?: number | undefined
  /** Called at the start, about once a second, and at the end. */
  onProgress?: ((progress: Progress) => void) | undefined
}

export interface Progress {
  operation: Operation
  steps: OperationStep[]
}

export type Finished<Result> = Omit<Operation, 'result'> & { result: Result }

const longPollSeconds = 20

/** Waits for the operation with long polls. With a progress callback, each poll takes at most one second. */
export async function waitForOperation<Result>(
  transport: Transport,
  projectId: string,
  started: Operation | string,
  { signal, timeoutMs = Number.POSITIVE_INFINITY, onProgress }: WaitOptions,
): Promise<Finished<Result>> {
  const operation_id = typeof started === 'string' ? started : started.operation_id
  const params = { project_id: projectId, operation_id }
  const giveUpAt = Date.now() + timeoutMs
  let waitSeconds = 0
  for (;;) {
    const operation = await callRoute(transport, 'operationGet', {
      params,
      query: { wait: waitSeconds },
      timeoutMs: 30_000 + waitSeconds * 1000,
      signal,
    })
    if (onProgress) {
      const { items } = await callRoute(transport, 'operationSteps', { params, signal })
      onProgress({ operation, steps: items })
    }
    if (operation.state === 'FAILED') throw errorOfOperation(operation)
    if (operation.state === 'SUCCEEDED') return operation as Finished<Result>
    const leftMs = giveUpAt - Date.now()
    if (leftMs <= 0) throw timeoutError(operation, timeoutMs)
    const maxSeconds = onProgress ? 1 : longPollSeconds
    waitSeconds = Math.min(maxSeconds, Math.max(1, Math.floor(leftMs / 1000)))
  }
}

function timeoutError(operation: Operation, timeoutMs: number): ApiError {
  const { operation_name, type } = operation.metadata
  return new ApiError({
    code: 'timed_out',
    message: `The ${operation_name} operation on the ${type.replace('_', ' ')} did not end within ${Math.round(timeoutMs / 1000)} s. The operation continues.`,
    operation,
  })
}

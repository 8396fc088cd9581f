import type { Operation, RouteId } from '@slipway/sdk'
import { useMutation } from '@tanstack/react-query'
import { showToast } from '../lib/toasts.ts'
import { client, refetchRoutes } from './client.ts'

interface ActionOptions<Input, Result> {
  /** Runs the call. */
  run: (input: Input) => Promise<Result>
  /** Returns the text of the success toast, such as "Stopped train-7"; empty for no toast. */
  done: (input: Input, result: Result) => string
  /** The id of the changed resource. A newer toast about the same resource replaces the older one. */
  about?: string
  /** The routes whose data is refetched afterwards. */
  invalidates?: RouteId[]
  /** The form shows errors itself, so there is no error toast. */
  showsErrors?: boolean
}

/** A change that is complete when the service responds. */
export function useAction<Input, Result = unknown>(options: ActionOptions<Input, Result>) {
  return useMutation<Result, Error, Input>({
    mutationFn: options.run,
    onSuccess: async (result, input) => {
      await invalidate(options.invalidates)
      const words = options.done(input, result)
      if (words) showToast({ title: words, about: options.about })
    },
    onError: (error) => {
      if (!options.showsErrors) showToast({ title: 'Request failed', error })
    },
  })
}

type Started = { operation: Operation }

/** A change that runs as an operation. The mutation ends when the service accepts it; a toast reports the result. */
export function useOperation<Input>(
  options: Omit<ActionOptions<Input, Started>, 'done' | 'about'> & {
    projectId: string
    done: (input: Input) => string
    failed: (input: Input) => string
  },
) {
  return useMutation<Started, Error, Input>({
    mutationFn: options.run,
    onSuccess: async ({ operation }, input) => {
      void reportEnd(
        options.projectId,
        operation,
        options.done(input),
        options.failed(input),
        options.invalidates,
      )
      await invalidate(options.invalidates)
    },
    onError: (error, input) => {
      if (!options.showsErrors) showToast({ title: options.failed(input), error })
    },
  })
}

async function reportEnd(
  projectId: string,
  operation: Operation,
  done: string,
  failed: string,
  invalidates: RouteId[] | undefined,
) {
  try {
    await client.wait({ project_id: projectId }, operation)
    showToast({ title: done, about: operation.metadata.id })
  } catch (error) {
    showToast({ title: failed, error: error as Error })
  }
  await invalidate(invalidates)
}

const always: RouteId[] = ['operationList', 'eventList']

export async function invalidate(ids: RouteId[] = []): Promise<void> {
  const stale = new Set<unknown>([...always, ...ids])
  await refetchRoutes((route) => stale.has(route))
}

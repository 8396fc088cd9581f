import type { Operation, RouteId } from '@slipway/sdk'
import { useMutation } from '@tanstack/react-query'
import { showToast } from '../lib/toasts.ts'
import { client, readAgain } from './client.ts'

interface ActionOptions<Input, Result> {
  /** Runs the call. */
  run: (input: Input) => Promise<Result>
  /** Returns what has happened: "Stopped train-7". The text is empty where the page shows it by itself. */
  done: (input: Input, result: Result) => string
  /** The id of what is changed. Of several results that concern it, the newest alone is shown. */
  about?: string
  /** These reads are stale afterwards. */
  touches?: RouteId[]
  /** The form itself shows errors, so that they need no toast. */
  showsErrors?: boolean
}

/** Makes a change that is done when the service responds. */
export function useAction<Input, Result = unknown>(options: ActionOptions<Input, Result>) {
  return useMutation<Result, Error, Input>({
    mutationFn: options.run,
    onSuccess: async (result, input) => {
      await touch(options.touches)
      const words = options.done(input, result)
      if (words) showToast({ title: words, about: options.about })
    },
    onError: (error) => {
      if (!options.showsErrors) showToast({ title: 'Request failed', error })
    },
  })
}

type Started = { operation: Operation }

/** Makes a change that takes time: the mutation ends when the service has accepted it, a toast says how it ended. */
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
        options.touches,
      )
      await touch(options.touches)
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
  touches: RouteId[] | undefined,
) {
  try {
    await client.wait({ project_id: projectId }, operation)
    showToast({ title: done, about: operation.metadata.id })
  } catch (error) {
    showToast({ title: failed, error: error as Error })
  }
  await touch(touches)
}

const always: RouteId[] = ['operationList', 'eventList']

export async function touch(ids: RouteId[] = []): Promise<void> {
  const stale = new Set<unknown>([...always, ...ids])
  await readAgain((route) => stale.has(route))
}

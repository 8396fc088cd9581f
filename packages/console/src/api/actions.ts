import type { Operation, RouteId } from '@slipway/sdk'
import { useMutation } from '@tanstack/react-query'
import { showToast } from '../lib/toasts.ts'
import { client, queryClient } from './client.ts'

interface ActionOptions<Input, Answer> {
  /** Runs the call. */
  run: (input: Input) => Promise<Answer>
  /** What happened, once it has: "Stopped train-7". Empty: the page shows it by itself. */
  done: (input: Input, answer: Answer) => string
  /** Which reads are stale afterwards. */
  touches?: RouteId[]
  /** Errors appear in the form itself rather than as a message of their own. */
  showsErrors?: boolean
}

/** A change that answers at once. */
export function useAction<Input, Answer = unknown>(options: ActionOptions<Input, Answer>) {
  return useMutation<Answer, Error, Input>({
    mutationFn: options.run,
    onSuccess: async (answer, input) => {
      await touch(options.touches)
      const words = options.done(input, answer)
      if (words) showToast({ title: words })
    },
    onError: (error) => {
      if (!options.showsErrors) showToast({ title: 'That did not work', error })
    },
  })
}

type Started = { operation: Operation }

/** A change that takes time: accepted first, then told by its end. The mutation itself ends with the acceptance. */
export function useOperation<Input>(
  options: Omit<ActionOptions<Input, Started>, 'done'> & {
    projectId: string
    done: (input: Input) => string
    failed: (input: Input) => string
  },
) {
  return useMutation<Started, Error, Input>({
    mutationFn: options.run,
    onSuccess: async ({ operation }, input) => {
      void tellTheEnd(
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

async function tellTheEnd(
  projectId: string,
  operation: Operation,
  done: string,
  failed: string,
  touches: RouteId[] | undefined,
) {
  try {
    await client.wait({ project_id: projectId }, operation)
    showToast({ title: done })
  } catch (error) {
    showToast({ title: failed, error: error as Error })
  }
  await touch(touches)
}

const always: RouteId[] = ['operationList', 'eventList']

export async function touch(ids: RouteId[] = []): Promise<void> {
  const stale = new Set<unknown>([...always, ...ids])
  await queryClient.invalidateQueries({ predicate: ({ queryKey }) => stale.has(queryKey[0]) })
}

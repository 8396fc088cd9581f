import { isApiError, type Operation, type RouteId } from '@slipway/sdk'
import { useMutation } from '@tanstack/react-query'
import { showToast } from '../lib/toasts.ts'
import { client, refetchRoutes } from './client.ts'

interface ActionOptions<Input, Result> {
  /** Runs the call. */
  run: (input: Input) => Promise<Result>
  /** Returns the text of the success toast, such as "Stopped train-7"; empty for no toast. */
  done: (input: Input, result: Result) => string
  /** The ID of the changed resource. A newer toast about the same resource replaces the older one. */
  about?: string
  /** The routes whose data is refetched afterwards. */
  invalidates?: RouteId[]
  /** True if the form shows errors itself, so that there is no error toast. */
  showsErrors?: boolean
  /** Returns the title of the failure toast, such as "Could not stop train-7". The toast offers a retry. */
  failed?: (input: Input) => string
  /** Returns a function that undoes the change; undefined if it cannot be undone. The toast has an Undo button. */
  undo?: (input: Input, result: Result) => (() => Promise<unknown>) | undefined
}

/** A change that is complete when the service responds. */
export function useAction<Input, Result = unknown>(options: ActionOptions<Input, Result>) {
  const succeed = async (result: Result, input: Input) => {
    await invalidate(options.invalidates)
    const title = options.done(input, result)
    if (!title) return
    const restore = options.undo?.(input, result)
    const undo = restore && (() => undoChange(title, restore, options.invalidates))
    showToast({ title, about: options.about, resolvesFailure: options.failed?.(input) ?? '', undo })
  }
  const fail = (error: Error, input: Input): void =>
    showToast({
      title: options.failed?.(input) ?? 'Request failed',
      error,
      retry:
        options.failed &&
        (() =>
          options.run(input).then(
            (result) => succeed(result, input),
            (again) => fail(again, input),
          )),
    })
  return useMutation<Result, Error, Input>({
    mutationFn: options.run,
    onSuccess: succeed,
    onError: (error, input) => {
      if (!options.showsErrors) fail(error, input)
    },
  })
}

async function undoChange(
  title: string,
  restore: () => Promise<unknown>,
  invalidates: RouteId[] | undefined,
): Promise<void> {
  const failed = `Could not undo: ${title}`
  try {
    await restore()
    await invalidate(invalidates)
    showToast({ title: `Undone: ${title}`, resolvesFailure: failed })
  } catch (error) {
    const retry = () => undoChange(title, restore, invalidates)
    showToast({ title: failed, error: error as Error, retry })
  }
}

export type StartedOperation = { operation: Operation }

/**
 * A change that runs as an operation. The mutation ends when the service accepts it; a toast reports the
 * result.
 */
export function useOperation<Input>(
  options: Omit<ActionOptions<Input, StartedOperation>, 'done' | 'about' | 'failed' | 'undo'> & {
    projectId: string
    done: (input: Input) => string
    failed: (input: Input) => string
    /** Returns whether the page shows this error itself, so that there is no error toast. */
    showsError?: (error: Error) => boolean
  },
) {
  /** Waits for the operation. A failure always gets a toast, because the form is closed by then. */
  const report = async (
    started: StartedOperation | Promise<StartedOperation>,
    input: Input,
  ): Promise<void> => {
    const failed = options.failed(input)
    try {
      const { operation } = await started
      await invalidate(options.invalidates)
      await waitForEnd(options.projectId, operation)
      showToast({ title: options.done(input), about: operation.metadata.id, resolvesFailure: failed })
    } catch (error) {
      showToast({ title: failed, error: error as Error, retry: () => report(options.run(input), input) })
    }
    await invalidate(options.invalidates)
  }
  return useMutation<StartedOperation, Error, Input>({
    mutationFn: options.run,
    onSuccess: async (started, input) => {
      void report(started, input)
      await invalidate(options.invalidates)
    },
    onError: (error, input) => {
      if (!options.showsErrors && !options.showsError?.(error)) void report(Promise.reject(error), input)
    },
  })
}

const transientCodes = ['connection_failed', 'timed_out', 'unavailable', 'rate_limited', 'unexpected_answer']
const waitPauseMs = 2_000

/** Waits until an operation ends, and throws if it failed. A lost connection is not a failure. */
export async function waitForEnd(projectId: string, operation: Operation): Promise<void> {
  for (;;) {
    try {
      await client.wait({ project_id: projectId }, operation)
      return
    } catch (error) {
      if (!isApiError(error) || error.operation || !transientCodes.includes(error.code)) throw error
      await new Promise((resolve) => setTimeout(resolve, waitPauseMs))
    }
  }
}

const alwaysInvalidated: RouteId[] = ['operationList', 'eventList']

export async function invalidate(ids: RouteId[] = []): Promise<void> {
  const stale = new Set<unknown>([...alwaysInvalidated, ...ids])
  await refetchRoutes((route) => stale.has(route))
}

import type { Progress } from '../store/compute/operation-leases.ts'
import type { StepEntry } from '../store/compute/operation-row.ts'

/**
 * Returns the progress with the step's new state in the log. A failed step keeps the state `failed`, although
 * it is undone as well.
 */
export function logStep<P extends Pick<Progress, 'step_log'>>(
  progress: P,
  name: string,
  state: StepEntry['state'],
  atMs: number,
): P {
  const log = progress.step_log
  const now = new Date(Math.round(atMs)).toISOString()
  const begun = log.find((entry) => entry.name === name)
  if (state === 'undone' && begun?.state === 'failed') return progress
  const entry = {
    ...(begun ?? { name, started_at: now }),
    state,
    completed_at: state === 'running' ? '' : now,
  }
  return {
    ...progress,
    step_log: begun ? log.map((each) => (each === begun ? entry : each)) : [...log, entry],
  }
}

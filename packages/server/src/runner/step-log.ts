import type { Progress } from '../store/compute/operation-leases.ts'
import type { StepEntry } from '../store/compute/operation-row.ts'

/**
 * With the step's new state in the log: begun where it is not in it yet, ended unless it runs. The step that failed
 * stays the one that failed, though its traces are removed like those of the others.
 */
export function noteStep(
  progress: Progress,
  name: string,
  state: StepEntry['state'],
  atMs: number,
): Progress {
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

import type { StepEntry } from '../store/operations.ts'

/** The log with the step's new state: begun where it is not in it yet, ended unless it runs. */
export function noteStep(
  log: StepEntry[],
  name: string,
  state: StepEntry['state'],
  atMs: number,
): StepEntry[] {
  const now = new Date(Math.round(atMs)).toISOString()
  const begun = log.find((entry) => entry.name === name)
  const entry = {
    ...(begun ?? { name, started_at: now }),
    state,
    completed_at: state === 'running' ? '' : now,
  }
  return begun ? log.map((each) => (each === begun ? entry : each)) : [...log, entry]
}

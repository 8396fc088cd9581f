import type { Failure } from '../domain/failure.ts'
import { violatedConstraint } from '../postgres/database.ts'

/** Runs a write and throws the refusal of the constraint that it violates. */
export async function refuseOn<T>(refusals: Record<string, Failure>, write: () => Promise<T>): Promise<T> {
  try {
    return await write()
  } catch (error) {
    throw refusals[violatedConstraint(error) ?? ''] ?? error
  }
}

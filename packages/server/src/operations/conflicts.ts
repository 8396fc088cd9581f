import type { Failure } from '../domain/failure.ts'
import { violatedConstraint } from '../postgres/database.ts'

/** Runs a write. If it violates one of these constraints, throws the error given for that constraint. */
export async function writeOrRefuse<T>(
  refusals: Record<string, Failure>,
  write: () => Promise<T>,
): Promise<T> {
  try {
    return await write()
  } catch (error) {
    throw refusals[violatedConstraint(error) ?? ''] ?? error
  }
}

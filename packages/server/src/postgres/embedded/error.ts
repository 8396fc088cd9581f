/** The reason why embedded PostgreSQL cannot run, in one line that an operator can act on. */
export class EmbeddedError extends Error {
  override name = 'EmbeddedError'
}

export const unsupported = (reason: string) =>
  new EmbeddedError(
    `embedded PostgreSQL does not run here (${reason}): set DATABASE_URL to use your own PostgreSQL server`,
  )

/** Turns a file system or PostgreSQL error into one line about `path`. */
export function explain(error: unknown, path: string): EmbeddedError {
  if (error instanceof EmbeddedError) return error
  const { code, path: failedPath } = error as NodeJS.ErrnoException
  const where = failedPath ?? path
  if (code === 'ENOSPC' || code === 'EDQUOT')
    return new EmbeddedError(`the disk is full: cannot write ${where}`)
  if (code === 'EACCES' || code === 'EPERM')
    return new EmbeddedError(`cannot use ${where}: permission denied`)
  if (code === 'EROFS') return new EmbeddedError(`${where} is on a read-only file system`)
  return new EmbeddedError(
    `embedded PostgreSQL failed: ${oneLine(String((error as Error).message ?? error))}`,
  )
}

/** Finds the line of PostgreSQL's output that explains why it did not start. */
export function explainOutput(output: string, logFile: string): EmbeddedError {
  if (/No space left on device|Disk quota exceeded/.test(output))
    return new EmbeddedError(`the disk is full: PostgreSQL could not start (see ${logFile})`)
  const lines = output.split('\n').filter((line) => line.trim() !== '')
  const reason =
    lines.find((line) => /\b(FATAL|PANIC):|error:|error while loading/.test(line)) ?? lines.at(-1)
  return new EmbeddedError(`PostgreSQL did not start: ${oneLine(reason ?? 'no output')} (see ${logFile})`)
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, ' ').trim()
}

/** Why the embedded PostgreSQL cannot serve: one line that an operator can act on. */
export class EmbeddedError extends Error {
  override name = 'EmbeddedError'
}

const otherwise = 'set DATABASE_URL to use a PostgreSQL server of your own'

export function unsupported(what: string): EmbeddedError {
  return new EmbeddedError(`embedded PostgreSQL does not run here (${what}): ${otherwise}`)
}

/** Turns what the file system or PostgreSQL said into one line about `path`. */
export function explain(error: unknown, path: string): EmbeddedError {
  if (error instanceof EmbeddedError) return error
  const { code, path: culprit } = error as NodeJS.ErrnoException
  const where = culprit ?? path
  if (code === 'ENOSPC' || code === 'EDQUOT')
    return new EmbeddedError(`the disk is full: cannot write ${where}`)
  if (code === 'EACCES' || code === 'EPERM') return new EmbeddedError(`not permitted to use ${where}`)
  if (code === 'EROFS') return new EmbeddedError(`${where} is on a read-only file system`)
  return new EmbeddedError(
    `embedded PostgreSQL failed: ${oneLine(String((error as Error).message ?? error))}`,
  )
}

/** Picks the line of PostgreSQL's output that says why it gave up. */
export function explainOutput(output: string, logFile: string): EmbeddedError {
  if (/No space left on device|Disk quota exceeded/.test(output))
    return new EmbeddedError(`the disk is full: PostgreSQL could not start (see ${logFile})`)
  const lines = output.split('\n').filter((line) => line.trim() !== '')
  const reason =
    lines.find((line) => /\b(FATAL|PANIC):|error:|error while loading/.test(line)) ?? lines.at(-1)
  return new EmbeddedError(
    `PostgreSQL did not start: ${oneLine(reason ?? 'it said nothing')} (see ${logFile})`,
  )
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, ' ').trim()
}

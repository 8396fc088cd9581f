export const exitCodes = {
  done: 0,
  error: 1,
  usage: 2,
  notFound: 3,
  conflict: 4,
  denied: 5,
  waitedTooLong: 124,
  interrupted: 130,
} as const

/** An error of the CLI itself. It is printed without a stack trace. */
export class CliError extends Error {
  readonly code: string
  readonly exitCode: number
  /** What the user can do about the error. Each hint is printed on a separate line. */
  readonly hints: string[]

  /** `cause` is the service error that this error explains. */
  constructor(code: string, message: string, exitCode: number, hints: string[] = [], cause?: unknown) {
    super(message, { cause })
    this.code = code
    this.exitCode = exitCode
    this.hints = hints
  }
}

export class UsageError extends CliError {
  constructor(message: string, hints: string[] = []) {
    super('usage', message, exitCodes.usage, hints)
  }
}

export class NotFound extends CliError {
  constructor(message: string, hints: string[] = []) {
    super('not_found', message, exitCodes.notFound, hints)
  }
}

/** Thrown when the user cancels a question with Ctrl-C. */
export class Interrupted extends CliError {
  constructor() {
    super('interrupted', 'Cancelled.', exitCodes.interrupted)
  }
}

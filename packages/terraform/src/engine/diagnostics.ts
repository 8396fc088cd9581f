import { isApiError } from '@slipway/sdk'

/** An error or a warning about a resource. */
export interface Problem {
  summary: string
  detail: string
  /** The attribute that is wrong. */
  attribute?: string
  isWarning?: boolean
}

/** Ends a Terraform call with diagnostics. */
export class ProblemError extends Error {
  readonly problems: Problem[]

  constructor(...problems: Problem[]) {
    super(problems.map(({ summary, detail }) => `${summary}: ${detail}`).join('\n'))
    this.problems = problems
  }
}

export function wireDiagnostics(problems: Problem[]): object[] {
  return problems.map(({ summary, detail, attribute, isWarning }) => ({
    severity: isWarning ? 2 : 1,
    summary,
    detail,
    ...(attribute && { attribute: attributePath(attribute) }),
  }))
}

export const attributePath = (name: string) => ({ steps: [{ attribute_name: name }] })

/** Describes any error. `doing` is the attempted action, such as "create the VM train-7". */
export function problemsOf(error: unknown, doing: string, attributeNames: string[] = []): Problem[] {
  if (error instanceof ProblemError) return error.problems
  const summary = `Cannot ${doing}`
  if (!isApiError(error)) return [{ summary, detail: error instanceof Error ? error.message : String(error) }]
  const request = error.requestId ? ` (request ${error.requestId})` : ''
  const detail = `${error.message} [${error.code}]${request}`
  const known = error.details
    .map(({ field, message }) => ({ attribute: field.replace(/^\//, '').split('/')[0]!, message }))
    .filter(({ attribute }) => attributeNames.includes(attribute))
  if (known.length > 0)
    return known.map(({ attribute, message }) => ({
      summary,
      detail: `${attribute} ${message}. ${detail}`,
      attribute,
    }))
  return [{ summary, detail }]
}

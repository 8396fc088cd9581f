/** The result of one check, and what an operator can do about it. */
export interface Finding {
  step: string
  verdict: 'ok' | 'warning' | 'problem'
  text: string
  fixes: string[]
}

const findingOf =
  (verdict: Finding['verdict']) =>
  (step: string, text: string, ...fixes: string[]): Finding => ({ step, verdict, text, fixes })

export const ok = findingOf('ok')
export const warning = findingOf('warning')
export const problem = findingOf('problem')

/** Lines for a terminal: the verdict, the step and the text, then the fixes below it. */
export function findingLines(findings: Finding[]): string {
  const width = Math.max(...findings.map(({ step }) => step.length))
  return findings
    .flatMap(({ step, verdict, text, fixes }) => [
      `${verdict.padEnd(7)}  ${step.padEnd(width)}  ${text}`,
      ...fixes.map((line) => `${' '.repeat(width + 11)}→ ${line}`),
    ])
    .join('\n')
}

/** The result of one check, and what an operator can do about it. */
export interface Finding {
  step: string
  verdict: 'ok' | 'warning' | 'missing'
  text: string
  fixes: string[]
}

export const ok = (step: string, text: string): Finding => ({ step, verdict: 'ok', text, fixes: [] })

export const warning = (step: string, text: string, ...fixes: string[]): Finding => ({
  ...{ step, verdict: 'warning', text, fixes },
})

export const missing = (step: string, text: string, ...fixes: string[]): Finding => ({
  ...{ step, verdict: 'missing', text, fixes },
})

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

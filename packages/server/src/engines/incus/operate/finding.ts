/** What a look at one thing found, and what an operator does about it. */
export interface Finding {
  step: string
  verdict: 'ok' | 'warning' | 'missing'
  text: string
  mend: string[]
}

export const ok = (step: string, text: string): Finding => ({ step, verdict: 'ok', text, mend: [] })

export const warning = (step: string, text: string, ...mend: string[]): Finding => ({
  ...{ step, verdict: 'warning', text, mend },
})

export const missing = (step: string, text: string, ...mend: string[]): Finding => ({
  ...{ step, verdict: 'missing', text, mend },
})

/** As lines for a terminal: the verdict, the step, what was found, and below it how to mend it. */
export function findingLines(findings: Finding[]): string {
  const width = Math.max(...findings.map(({ step }) => step.length))
  return findings
    .flatMap(({ step, verdict, text, mend }) => [
      `${verdict.padEnd(7)}  ${step.padEnd(width)}  ${text}`,
      ...mend.map((line) => `${' '.repeat(width + 11)}→ ${line}`),
    ])
    .join('\n')
}

export interface Figure {
  what: string
  value: number
  unit: string
  /** The value to compare with, which may be better or worse. */
  baseline: number
  /** What the baseline is. */
  baselineIs: string
  aim?: string
}

/** Prints one line for each figure, with its name, value, baseline and ratio. */
export function print(figures: Figure[]): void {
  const number = (n: number) => (n >= 100 ? n.toFixed(0) : n.toFixed(1))
  for (const { what, value, unit, baseline, baselineIs, aim } of figures)
    console.log(
      `${what.padEnd(58)} ${number(value).padStart(8)} ${unit.padEnd(3)}  baseline ${number(baseline).padStart(8)} (${baselineIs})  ratio ${(value / baseline).toFixed(2)}${aim ? `  [${aim}]` : ''}`,
    )
}

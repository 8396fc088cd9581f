export interface Figure {
  what: string
  value: number
  unit: string
  /** Measured in the same run. */
  limit: number
  limitIs: string
  aim?: string
}

/** Prints one line for each figure, with its name, value, limit and ratio. */
export function print(figures: Figure[]): void {
  const number = (n: number) => (n >= 100 ? n.toFixed(0) : n.toFixed(1))
  for (const { what, value, unit, limit, limitIs, aim } of figures)
    console.log(
      `${what.padEnd(58)} ${number(value).padStart(8)} ${unit.padEnd(3)}  limit ${number(limit).padStart(8)} (${limitIs})  ratio ${(value / limit).toFixed(2)}${aim ? `  [${aim}]` : ''}`,
    )
}

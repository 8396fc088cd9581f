export interface Figure {
  what: string
  value: number
  unit: string
  /** What the value is compared with. */
  reference: number
  /** What the reference is, such as `an empty node`. */
  referenceIs: string
  aim?: string
}

/** Prints one line for each figure, with its name, value, reference and ratio. */
export function print(figures: Figure[]): void {
  const number = (n: number) => (n >= 100 ? n.toFixed(0) : n.toFixed(1))
  for (const { what, value, unit, reference, referenceIs, aim } of figures)
    console.log(
      `${what.padEnd(58)} ${number(value).padStart(8)} ${unit.padEnd(3)}  reference ${number(reference).padStart(8)} (${referenceIs})  ratio ${(value / reference).toFixed(2)}${aim ? `  [${aim}]` : ''}`,
    )
}

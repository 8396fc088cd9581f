/** How many letters must be added, dropped, changed or swapped with a neighbour to turn one word into the other. */
export function editDistance(a: string, b: string): number {
  const rows = Array.from({ length: a.length + 1 }, (_, i) =>
    Array.from({ length: b.length + 1 }, (_, j) => (i === 0 ? j : j === 0 ? i : 0)),
  )
  const cell = (i: number, j: number) => rows[i]![j]!
  for (let i = 1; i <= a.length; i++) {
    for (let j = 1; j <= b.length; j++) {
      const change = a[i - 1] === b[j - 1] ? 0 : 1
      let distance = Math.min(cell(i - 1, j) + 1, cell(i, j - 1) + 1, cell(i - 1, j - 1) + change)
      const isSwap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      if (isSwap) distance = Math.min(distance, cell(i - 2, j - 2) + 1)
      rows[i]![j] = distance
    }
  }
  return cell(a.length, b.length)
}

/** The choice that was most likely meant; letter case counts for nothing. */
export function nearest<T extends string>(text: string, choices: readonly T[]): T {
  const wanted = text.slice(0, 200).toLowerCase()
  let best = choices[0]!
  let least = Number.POSITIVE_INFINITY
  for (const choice of choices) {
    const distance = editDistance(wanted, choice.toLowerCase())
    if (distance < least) [best, least] = [choice, distance]
  }
  return best
}

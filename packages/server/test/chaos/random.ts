/** Random choices determined by a seed: the same seed gives the same choices (mulberry32). */
export class Random {
  #state: number

  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  /** A number from 0 (inclusive) to 1 (exclusive). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let mixed = this.#state
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }

  /** A whole number, both ends included. */
  between(least: number, most: number): number {
    return least + Math.floor(this.next() * (most - least + 1))
  }

  isOneIn(count: number): boolean {
    return this.between(1, count) === 1
  }

  pick<T>(all: readonly T[]): T {
    return all[this.between(0, all.length - 1)]!
  }

  /** Draws a name with a probability proportional to its weight. */
  weighted<Name extends string>(weights: Record<Name, number>): Name {
    const names = Object.keys(weights) as Name[]
    let left = this.next() * names.reduce((sum, name) => sum + weights[name], 0)
    for (const name of names) {
      left -= weights[name]
      if (left < 0) return name
    }
    return names[0]!
  }
}

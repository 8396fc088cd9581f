import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Exchange } from './history-checks.ts'

interface Line {
  atMs: number
  text: string
}

const linesAround = 6
const mostLines = 200

/** Records requests, faults and responses, so that a violation can be read next to its causes. */
export class History {
  readonly #lines: Line[] = []
  readonly #violations: string[] = []
  /** All requests of all clients, in the order in which they ended. */
  readonly exchanges: Exchange[] = []
  readonly #startedMs = performance.now()

  note(text: string): void {
    this.#lines.push({ atMs: performance.now() - this.#startedMs, text })
  }

  /** Records a broken promise, which is also shown in the history at the time when it was found. */
  violation(text: string): void {
    if (this.#violations.includes(text)) return
    this.#violations.push(text)
    this.note(`VIOLATION ${text}`)
  }

  get violations(): readonly string[] {
    return this.#violations
  }

  write(directory: string): void {
    writeFileSync(join(directory, 'history.txt'), this.#lines.map(print).join('\n'))
    const exchanges = this.exchanges.map((exchange) => JSON.stringify(exchange))
    writeFileSync(join(directory, 'exchanges.jsonl'), exchanges.join('\n'))
  }

  /** The lines around every mention of the resources in the violations, or the last lines if there is none. */
  nearViolations(): string {
    const named = new Set(this.#violations.flatMap((text) => text.match(/[0-9a-f]{8}-[0-9a-f-]{27}/g) ?? []))
    const isNear = new Array<boolean>(this.#lines.length).fill(false)
    for (const [index, { text }] of this.#lines.entries())
      if (text.startsWith('VIOLATION') || [...named].some((id) => text.includes(id)))
        isNear.fill(true, Math.max(0, index - linesAround), index + linesAround)
    const near = this.#lines.filter((_, index) => isNear[index])
    return (near.length > 0 ? near : this.#lines).slice(-mostLines).map(print).join('\n')
  }
}

const print = ({ atMs, text }: Line) => `${(atMs / 1000).toFixed(3).padStart(9)} s  ${text}`

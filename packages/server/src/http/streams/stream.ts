import type { ServerResponse } from 'node:http'
import type { EventRow, EventScope } from '../../store/events/events.ts'
import { eventView } from '../../views/events.ts'

/** Far above a burst of events, far below what 500 idle readers could cost. */
const mostBufferedBytes = 256 * 1024
const lastWordsMs = 1_000

export interface StreamFilter extends EventScope {
  resourceId: string | null
  type: string | null
  actor: string | null
}

/** One event as it goes over the wire. */
export const frameOf = (row: EventRow, showsClient: boolean): string =>
  `id: ${row.position}\ndata: ${JSON.stringify(eventView(row, showsClient))}\n\n`

/** One reader's answer. */
export class EventStream {
  readonly filter: StreamFilter
  /** All up to here was sent, or is not for this reader. */
  position: number
  /** Fed by the shared reader; until then it catches up by itself. */
  isLive = false
  /** Whether its reader may see where callers were. */
  showsClient: boolean
  readonly #answer: ServerResponse

  constructor(answer: ServerResponse, filter: StreamFilter, position: number, showsClient: boolean) {
    this.#answer = answer
    this.showsClient = showsClient
    this.filter = filter
    this.position = position
  }

  get isOpen(): boolean {
    return !this.#answer.destroyed && !this.#answer.writableEnded
  }

  wants(row: EventRow): boolean {
    const { projectId, organizationId, resourceId, type, actor } = this.filter
    return (
      row.position > this.position &&
      (projectId === null || row.project_id === projectId) &&
      (organizationId === null || (row.organization_id === organizationId && row.project_id === null)) &&
      (resourceId === null || row.resource_id === resourceId) &&
      (type === null || row.type === type) &&
      (actor === null || row.actor === actor)
    )
  }

  /** Who does not read is dropped, and asks again from where it was. */
  write(text: string): void {
    if (!this.isOpen) return
    if (this.#answer.writableLength > mostBufferedBytes) this.#answer.destroy()
    else this.#answer.write(text)
  }

  /** Resolves when the reader has taken what was written, or is gone, or did not in time. */
  async drained(withinMs: number): Promise<void> {
    if (!this.isOpen || !this.#answer.writableNeedDrain) return
    await new Promise<void>((resolve) => {
      const done = () => {
        clearTimeout(timer)
        this.#answer.off('drain', done).off('close', done)
        resolve()
      }
      const timer = setTimeout(() => {
        this.#answer.destroy()
        done()
      }, withinMs)
      this.#answer.on('drain', done).on('close', done)
    })
  }

  /** What is on its way may arrive; a reader that does not take it gets no more time than that. */
  end(): void {
    if (!this.isOpen) return
    this.#answer.end()
    setTimeout(() => this.#answer.destroy(), lastWordsMs).unref()
  }
}

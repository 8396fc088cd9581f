import type { ServerResponse } from 'node:http'
import type { EventFilter, EventRow } from '../../store/events/events.ts'
import { eventView } from '../../views/events.ts'
import type { OperatorReads } from '../operator-reads.ts'

/**
 * Much larger than a burst of events, and small enough that the buffers of 500 clients that do not read fit
 * into memory.
 */
const maxBufferedBytes = 256 * 1024
const closeMs = 1_000

export type StreamFilter = Pick<
  EventFilter,
  'projectId' | 'organizationId' | 'resourceId' | 'resourceType' | 'type' | 'actor'
>

/** Returns the event as a server-sent event. */
export const frameOf = (row: EventRow, showsClient: boolean): string =>
  `id: ${row.position}\ndata: ${JSON.stringify(eventView(row, showsClient))}\n\n`

/** The response to one client. */
export class EventStream {
  readonly filter: StreamFilter
  /** Every event up to here was sent, or does not match the filter. */
  position: number
  /** True once the shared reader feeds this stream; until then, the stream reads past events itself. */
  isLive = false
  /** True if the client may see the addresses that other callers used. */
  showsClient: boolean
  /** The record of what an operator was shown; null for tenants. */
  readonly reads: OperatorReads | null
  readonly #response: ServerResponse

  constructor(
    response: ServerResponse,
    filter: StreamFilter,
    position: number,
    showsClient: boolean,
    reads: OperatorReads | null,
  ) {
    this.reads = reads
    this.#response = response
    this.showsClient = showsClient
    this.filter = filter
    this.position = position
  }

  get isOpen(): boolean {
    return !this.#response.destroyed && !this.#response.writableEnded
  }

  wants(row: EventRow): boolean {
    const { projectId, organizationId, resourceId, resourceType, type, actor } = this.filter
    return (
      row.position > this.position &&
      (projectId === null || row.project_id === projectId) &&
      (organizationId === null || (row.organization_id === organizationId && row.project_id === null)) &&
      (resourceId === null || row.resource_id === resourceId) &&
      (resourceType === null || row.resource_type === resourceType) &&
      (type === null || row.type === type) &&
      (actor === null || row.actor === actor)
    )
  }

  /** A client that does not read is disconnected; it can reconnect with Last-Event-ID. */
  write(text: string): void {
    if (!this.isOpen) return
    if (this.#response.writableLength > maxBufferedBytes) this.#response.destroy()
    else this.#response.write(text)
  }

  /** Waits until the client has read what was written. Disconnects a client that takes longer than `withinMs`. */
  async drain(withinMs: number): Promise<void> {
    if (!this.isOpen || !this.#response.writableNeedDrain) return
    await new Promise<void>((resolve) => {
      const done = () => {
        clearTimeout(timer)
        this.#response.off('drain', done).off('close', done)
        resolve()
      }
      const timer = setTimeout(() => {
        this.#response.destroy()
        done()
      }, withinMs)
      this.#response.on('drain', done).on('close', done)
    })
  }

  /** Ends the response. Data that was already written can still arrive within `closeMs`. */
  end(): void {
    if (!this.isOpen) return
    this.#response.end()
    setTimeout(() => this.#response.destroy(), closeMs).unref()
  }
}

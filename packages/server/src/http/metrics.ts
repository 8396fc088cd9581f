import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import type { Database } from '../store/database.ts'

/** What /metrics shows of this process. */
export class Metrics {
  readonly registry = new Registry()
  readonly #requests = new Counter({
    name: 'slipway_http_requests_total',
    help: 'Requests by route and status.',
    labelNames: ['route', 'status'],
    registers: [this.registry],
  })
  readonly #seconds = new Histogram({
    name: 'slipway_http_request_seconds',
    help: 'Time to answer, by route.',
    labelNames: ['route'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10],
    registers: [this.registry],
  })

  constructor(database: Database, counts: () => Promise<{ inProgress: number; stuck: number }>) {
    collectDefaultMetrics({ register: this.registry })
    const { pool, traffic } = database
    const count = (what: string, help: string, read: () => number) =>
      this.#counter(`slipway_database_${what}_total`, help, read)
    count('statements', 'Statements sent to the database.', () => traffic.statements)
    count('round_trips', 'Messages to the database that were waited for.', () => traffic.roundTrips)
    count('commits', 'Transactions, single statements included.', () => traffic.commits)
    this.#gauge('slipway_pool_connections', 'Open database connections.', () => pool.totalCount)
    this.#gauge('slipway_pool_idle', 'Idle database connections.', () => pool.idleCount)
    this.#gauge('slipway_pool_waiting', 'Requests waiting for a connection.', () => pool.waitingCount)
    this.#gauge(
      'slipway_operations_in_progress',
      'Operations under way.',
      async () => (await counts()).inProgress,
    )
    this.#gauge(
      'slipway_operations_stuck',
      'Operations that wait for an operator.',
      async () => (await counts()).stuck,
    )
  }

  observe(route: string, status: number, seconds: number): void {
    this.#requests.inc({ route, status })
    this.#seconds.observe({ route }, seconds)
  }

  #counter(name: string, help: string, read: () => number): void {
    new Counter({
      name,
      help,
      registers: [this.registry],
      collect() {
        this.reset()
        this.inc(read())
      },
    })
  }

  #gauge(name: string, help: string, read: () => number | Promise<number>): void {
    new Gauge({
      name,
      help,
      registers: [this.registry],
      async collect() {
        // Metrics must not fail with the database: the last known value stands.
        this.set(await Promise.resolve(read()).catch(() => Number.NaN))
      },
    })
  }
}

import { Counter, collectDefaultMetrics, Gauge, type Histogram, Registry } from 'prom-client'
import { logCounts } from '../../log.ts'
import type { Services } from '../../services.ts'
import { addFleetMetrics } from './fleet.ts'

const bounds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10]

/** Request counts of one route. Counting with prom-client would look up the labels for each request. */
class RouteCounts {
  readonly byStatus = new Map<number, number>()
  readonly #withinBound = bounds.map(() => 0)
  #count = 0
  #seconds = 0

  add(status: number, seconds: number): void {
    this.byStatus.set(status, (this.byStatus.get(status) ?? 0) + 1)
    for (let i = bounds.length - 1; i >= 0 && seconds <= bounds[i]!; i--) this.#withinBound[i]!++
    this.#count++
    this.#seconds += seconds
  }

  linesOf(metric: string, route: string) {
    const line = (what: string, value: number, le?: number | '+Inf') => ({
      metricName: `${metric}_${what}`,
      labels: le === undefined ? { route } : { le, route },
      value,
    })
    return [
      ...bounds.map((bound, i) => line('bucket', this.#withinBound[i]!, bound)),
      line('bucket', this.#count, '+Inf'),
      line('sum', this.#seconds),
      line('count', this.#count),
    ]
  }
}

export class Metrics {
  readonly registry = new Registry()
  readonly #routes = new Map<string, RouteCounts>()

  constructor(services: Services) {
    this.#showRoutes()
    collectDefaultMetrics({ register: this.registry })
    // These gauges are named like counters, and repeat the gauges whose names have no suffix `_total`.
    for (const name of ['handles', 'requests', 'resources'])
      this.registry.removeSingleMetric(`nodejs_active_${name}_total`)
    const { pool, traffic, connections } = services.database
    const count = (what: string, help: string, read: () => number) =>
      this.#counter(`slipway_database_${what}_total`, help, read)
    count('statements', 'Statements sent to the database.', () => traffic.statements)
    count('round_trips', 'Round trips to the database.', () => traffic.roundTrips)
    count('commits', 'Committed transactions, including single statements.', () => traffic.commits)
    this.#counter(
      'slipway_log_dropped_lines_total',
      'Log lines dropped because standard output did not accept them.',
      () => logCounts.dropped,
    )
    this.#gauge('slipway_pool_connections', 'Open database connections.', () => pool.totalCount)
    this.#gauge('slipway_pool_idle', 'Idle database connections.', () => pool.idleCount)
    this.#gauge('slipway_pool_waiting', 'Requests waiting for a connection.', () => connections.waitingCount)
    addFleetMetrics(this.registry, services)
  }

  observe(route: string, status: number, seconds: number): void {
    let counts = this.#routes.get(route)
    if (!counts) {
      counts = new RouteCounts()
      this.#routes.set(route, counts)
    }
    counts.add(status, seconds)
  }

  #showRoutes(): void {
    const routes = this.#routes
    new Counter({
      name: 'slipway_http_requests_total',
      help: 'Requests by route and status.',
      labelNames: ['route', 'status'],
      registers: [this.registry],
      collect() {
        this.reset()
        for (const [route, { byStatus }] of routes)
          for (const [status, count] of byStatus) this.inc({ route, status }, count)
      },
    })
    const name = 'slipway_http_request_seconds'
    const shown = { name, help: 'Response time, by route.', type: 'histogram', aggregator: 'sum' }
    const get = async () => ({
      ...shown,
      values: [...routes].flatMap(([route, counts]) => counts.linesOf(name, route)),
    })
    this.registry.registerMetric({ ...shown, get } as unknown as Histogram)
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

  #gauge(name: string, help: string, read: () => number): void {
    new Gauge({
      name,
      help,
      registers: [this.registry],
      collect() {
        this.set(read())
      },
    })
  }
}

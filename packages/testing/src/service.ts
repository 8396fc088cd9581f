import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import {
  countedQuotaNames,
  type RouteBody,
  type RouteId,
  type RouteQuery,
  type RouteResponse,
  routeOf,
} from '@slipway/contract'
import { createLevers, type Levers } from '@slipway/sdk/levers'
import type { Config } from '@slipway/server/config/index.ts'
import type { SimulatedEngine } from '@slipway/server/engines/simulated/engine.ts'
import type { Database } from '@slipway/server/postgres/database.ts'
import { type Server, startServer } from '@slipway/server/server.ts'
import { seedDemo } from '@slipway/server/setup/demo.ts'
import { pino } from 'pino'
import { onTestFinished } from 'vitest'
import { createDatabase, query } from './database.ts'
import { eventually } from './eventually.ts'
import { defaultConfig } from './fleet.ts'
import type { Credentials } from './launcher.ts'
import { clockOf, type MachineClock } from './postgres/clock.ts'
import { exchange } from './requests.ts'
import { validateResponse } from './responses.ts'

export interface ApiResponse<T = unknown> {
  status: number
  headers: Headers
  body: T
}

export interface CallOptions<Id extends RouteId> {
  params?: Record<string, string>
  query?: Partial<NonNullable<RouteQuery<Id>>> | Record<string, string | number | boolean>
  body?: RouteBody<Id> | unknown
  token?: string | null
  headers?: Record<string, string>
}

/** A service with the demo's tenants, without delays, on a separate database. */
export interface TestService {
  server: Server
  database: Database
  url: string
  databaseUrl: string
  config: Config
  dataDir: string
  /** The server's log, with one JSON object per line. */
  logLines: string[]
  credentials: Credentials
  /**
   * Calls a route by its id, with the demo's write key unless another token is given. The response is checked
   * against the contract.
   */
  call<Id extends RouteId>(id: Id, options?: CallOptions<Id>): Promise<ApiResponse<RouteResponse<Id>>>
  /** Returns the response body of a call that must succeed. */
  ok<Id extends RouteId>(id: Id, options?: CallOptions<Id>): Promise<RouteResponse<Id>>
  /** Sends any request; the response is checked if it is JSON. */
  request(
    method: string,
    path: string,
    options?: { token?: string | null; body?: string; headers?: Record<string, string> },
  ): Promise<ApiResponse>
  /** Waits until an operation ends and returns it. */
  ended(operationId: string): Promise<RouteResponse<'operationGet'>>
  /**
   * Like `ended`, but moves the clock past the pauses between attempts. Does not move the clock while a
   * worker holds the lease.
   */
  advanceUntilEnded(operationId: string): Promise<RouteResponse<'operationGet'>>
  simulator(location?: string): SimulatedEngine
  sql<Row = Record<string, unknown>>(text: string, values?: unknown[]): Promise<Row[]>
  /** The levers of a service that was started `withLevers`. When a call returns, all due work is done. */
  levers: Levers
  /** Moves the machine's clock without waiting for due work. See `clockOf` for when to use it. */
  clock: MachineClock
  /** Starts another server on the same database, like a second process, without levers. */
  another(changes?: ConfigChanges): Promise<Server>
  restart(): Promise<void>
  close(): Promise<void>
}

export type ConfigChanges = (config: Config) => void

/** Effectively disables limits, raises quotas and removes the delays of simulated locations. */
export const instantly: ConfigChanges = (config) => {
  config.limits.requestsPerSecond = 100_000
  config.limits.burst = 100_000
  config.limits.organizationRequestsPerSecond = 100_000
  config.limits.organizationBurst = 100_000
  config.limits.organizationInFlight = 100_000
  config.limits.organizationStreams = 100_000
  config.limits.connectionsPerAddress = 100_000
  config.limits.unknownBearersPerSecond = 100_000
  // All users of a suite share one client address.
  config.limits.passwordFailuresPerAddress = 100_000
  // Suites create dozens of projects, keys and rules in the demo's organization.
  for (const name of [...countedQuotaNames, 'firewall_rules'] as const) config.quotas[name] = 10_000
  for (const location of config.locations)
    if (location.engine === 'simulated') {
      location.simulated.bootMs = [0, 0]
      location.simulated.quarantineMs = 0
    }
}

/** Starts the service with `--dev`, so that `service.levers` work. */
export const withLevers: ConfigChanges = (config) => {
  config.isDev = true
}

/**
 * With `frozenAt`, the clock is set to that time before the demo is created, and then only the test moves it:
 * with `service.levers` if the service was started with them, otherwise with `service.clock`.
 */
export async function startService(
  change: ConfigChanges = () => {},
  frozenAt?: string,
): Promise<TestService> {
  const database = await createDatabase()
  const dataDir = mkdtempSync(join(tmpdir(), 'slipway-'))
  const logLines: string[] = []
  const log = pino(
    { level: 'info' },
    new Writable({
      write(chunk, _encoding, done) {
        logLines.push(String(chunk))
        done()
      },
    }),
  )
  const makeConfig = (more: ConfigChanges) => {
    const config = defaultConfig('--port', '0', '--data-dir', dataDir)
    instantly(config)
    change(config)
    more(config)
    return config
  }
  const config = makeConfig(() => {})
  if (frozenAt) {
    const clock = clockOf((text, values) => query(database.url, text, values))
    await (config.isDev ? clock.beginAt(frozenAt) : clock.freeze(frozenAt))
  }
  let server = await startServer(config, database.url, log)
  const credentials = (await seedDemo(
    { database: server.services.database, config },
    { api: server.url, console: server.url },
  ))!
  const others: Server[] = []

  const request: TestService['request'] = async (method, path, options = {}) => {
    const { token = credentials.access_key, body, headers = {} } = options
    const allHeaders = {
      ...(token !== null && { authorization: `Bearer ${token}` }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    }
    const response = await exchange(method, `${service.url}${path}`, allHeaders, body)
    const isJson = response.headers.get('content-type')?.startsWith('application/json')
    const parsed = isJson && response.text !== '' ? JSON.parse(response.text) : response.text
    validateResponse(method, path, response.status, response.headers.get('content-type') ?? '', parsed)
    return { status: response.status, headers: response.headers, body: parsed }
  }

  const service: TestService = {
    get server() {
      return server
    },
    get database() {
      return server.services.database
    },
    get url() {
      return server.url
    },
    databaseUrl: database.url,
    config,
    dataDir,
    logLines,
    credentials,
    request,
    call(id, options = {}) {
      const { method, path } = routeOf(id)
      const params: Record<string, string> = {
        project_id: credentials.project_id,
        organization_id: credentials.organization_id,
        ...options.params,
      }
      const query = new URLSearchParams(
        Object.entries(options.query ?? {}).map(([name, value]): [string, string] => [name, String(value)]),
      ).toString()
      const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => params[name] ?? `{${name}}`)
      return request(method, query ? `${filled}?${query}` : filled, {
        ...(options.token !== undefined && { token: options.token }),
        ...(options.body !== undefined && { body: JSON.stringify(options.body) }),
        ...(options.headers && { headers: options.headers }),
      }) as Promise<never>
    },
    async ok(id, options) {
      const response = await service.call(id, options)
      if (response.status !== 200)
        throw new Error(`${id} returned ${response.status}: ${JSON.stringify(response.body)}`)
      return response.body
    },
    async ended(operationId) {
      for (;;) {
        const operation = await service.ok('operationGet', {
          params: { operation_id: operationId },
          query: { wait: 20 },
        })
        if (operation.state !== 'IN_PROGRESS') return operation
      }
    },
    async advanceUntilEnded(operationId) {
      await eventually(async () => {
        const [row] = await service.sql<{ is_over: boolean; is_parked: boolean; is_paused: boolean }>(
          `SELECT state <> 'IN_PROGRESS' AS is_over, coalesce(lease_token IS NULL AND run_at > slipway_now(), false) AS is_parked,
                  (SELECT paused_at IS NOT NULL FROM clock) AS is_paused
           FROM operations LEFT JOIN operation_queue ON operation_id = id WHERE id = $1`,
          [operationId],
        )
        if (row!.is_parked && row!.is_paused) await service.levers.clock.advance({ seconds: 1 })
        else if (row!.is_parked) {
          await service.clock.advance('1 second')
          server.services.signals.send('operations')
        }
        return row!.is_over
      }, 60_000)
      return service.ended(operationId)
    },
    simulator: (location = 'us-east1-a') => server.services.engines.get(location) as SimulatedEngine,
    async sql(text, values = []) {
      return (await server.services.database.pool.query(text, values)).rows
    },
    get levers() {
      return createLevers({ baseUrl: server.url, token: credentials.operator_key })
    },
    clock: clockOf((text, values) => service.sql(text, values)),
    async another(more = () => {}) {
      const plain = makeConfig((changed) => {
        changed.isDev = false
        more(changed)
      })
      const other = await startServer(plain, database.url, log)
      others.push(other)
      return other
    },
    async restart() {
      await server.close()
      server = await startServer(
        makeConfig(() => {}),
        database.url,
        log,
      )
    },
    async close() {
      await Promise.all([server, ...others].map((each) => each.close().catch(() => {})))
      await database.drop()
      rmSync(dataDir, { recursive: true, force: true })
    },
  }
  return service
}

/** Starts a service that is closed at the end of the test. */
export async function useService(change?: ConfigChanges, frozenAt?: string): Promise<TestService> {
  const service = await startService(change, frozenAt)
  onTestFinished(() => service.close())
  return service
}

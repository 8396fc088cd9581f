import { Counter, Gauge, type Registry } from 'prom-client'
import type { Services } from '../../services.ts'
import { findNextOpenDay } from '../../store/billing/usage-days.ts'
import { type FleetMetric, type FleetMetricRow, readFleetMetrics } from '../../store/fleet/metrics.ts'
import { certificateExpiries } from './certificates.ts'

interface GaugeFields {
  help: string
  labels?: readonly string[]
}

const gauges: Record<FleetMetric, GaugeFields> = {
  hosts: {
    help: 'Hosts by location and state; `closed` is a cordoned host, which gets no new VMs.',
    labels: ['location', 'state'],
  },
  gpus: { help: 'GPUs by location, model and state.', labels: ['location', 'model', 'state'] },
  gpus_suspect: {
    help: 'GPUs that have had a fault and have not passed a check since then, by location and model.',
    labels: ['location', 'model'],
  },
  vms: { help: 'VMs by location and state.', labels: ['location', 'state'] },
  engine_silence_seconds: {
    help: 'Time since the engine of a location last returned its inventory.',
    labels: ['location', 'engine'],
  },
  operations_in_progress: { help: 'Operations in progress.' },
  operations_stuck: { help: 'Operations that wait for an operator.' },
  operations_waiting: {
    help: 'Operations that are due and that no worker has claimed.',
    labels: ['location'],
  },
  operations_waiting_seconds: {
    help: 'How long the oldest operation of operations_waiting has been due.',
    labels: ['location'],
  },
  capacity_requests_waiting: {
    help: 'Capacity requests that wait in the queue, by location and GPU family.',
    labels: ['location', 'family'],
  },
  capacity_requests_waiting_seconds: {
    help: 'The age of the oldest capacity request of capacity_requests_waiting.',
    labels: ['location', 'family'],
  },
  webhook_deliveries_pending: { help: 'Webhook deliveries that have not succeeded or failed yet.' },
  webhook_lag_seconds: {
    help: 'The longest time that a webhook has been waiting to send a delivery that is due.',
  },
  clock_ahead_seconds: { help: 'How far the service time is ahead of the PostgreSQL clock.' },
}

/**
 * Values that are the same for all processes of the service. They are absent if the database cannot be read.
 */
interface Fleet {
  rows: FleetMetricRow[]
  billingLagSeconds: number
}

/** Adds the metrics of hosts, VMs, queues, engines and certificates. */
export function addFleetMetrics(registry: Registry, services: Services): void {
  const read = sharedRead(() => readFleet(services))
  for (const [metric, { help, labels = [] }] of Object.entries(gauges))
    addGauge(registry, `slipway_${metric}`, help, labels, async (set) => {
      for (const row of (await read())?.rows ?? []) if (row.metric === metric) set(row.value, row.labels)
    })
  addGauge(
    registry,
    'slipway_billing_lag_seconds',
    'How long the usage roll-up of the oldest open day has been overdue.',
    [],
    async (set) => {
      const fleet = await read()
      if (fleet) set(fleet.billingLagSeconds)
    },
  )
  addGauge(
    registry,
    'slipway_database_up',
    'Whether this process could read the database: 1 or 0.',
    [],
    async (set) => set((await read()) ? 1 : 0),
  )
  addGauge(
    registry,
    'slipway_certificate_expiry_timestamp_seconds',
    'When a certificate that this process uses expires, in seconds since 1970.',
    ['use', 'location'],
    async (set) => {
      for (const { use, location, seconds } of await certificateExpiries(services.config))
        set(seconds, { use, location })
    },
  )
  addEngineCalls(registry, services)
}

async function readFleet({ database, config }: Services): Promise<Fleet> {
  const [rows, open] = await Promise.all([
    readFleetMetrics(database),
    findNextOpenDay(database, config.billing.rollupAtUtc),
  ])
  return { rows, billingLagSeconds: Math.max(0, open?.overdueSeconds ?? 0) }
}

function addEngineCalls(registry: Registry, { engineCalls }: Services): void {
  const byMethod = (
    name: string,
    help: string,
    read: (calls: { count: number; seconds: number }) => number,
  ) =>
    new Counter({
      name,
      help,
      labelNames: ['location', 'method'],
      registers: [registry],
      collect() {
        this.reset()
        for (const [location, calls] of engineCalls)
          for (const [method, counted] of calls.byMethod) this.inc({ location, method }, read(counted))
      },
    })
  byMethod(
    'slipway_engine_calls_total',
    'Calls from this process to the engine of a location.',
    (calls) => calls.count,
  )
  byMethod(
    'slipway_engine_call_seconds_total',
    'Total duration of the calls that ended, by location and method.',
    (calls) => calls.seconds,
  )
  new Counter({
    name: 'slipway_engine_call_failures_total',
    help: 'Failed calls from this process to the engine of a location, by kind of failure.',
    labelNames: ['location', 'kind'],
    registers: [registry],
    collect() {
      this.reset()
      for (const [location, { failures }] of engineCalls)
        for (const [kind, count] of failures) this.inc({ location, kind }, count)
    },
  })
}

type SetValue = (value: number, labels?: Record<string, string>) => void

function addGauge(
  registry: Registry,
  name: string,
  help: string,
  labelNames: readonly string[],
  collect: (set: SetValue) => Promise<void>,
): void {
  new Gauge({
    name,
    help,
    labelNames,
    registers: [registry],
    async collect() {
      this.reset()
      await collect((value, labels = {}) => this.set(labels, value))
    },
  })
}

/** All gauges of a response, and concurrent responses, share one read. Returns undefined if it fails. */
function sharedRead<T>(read: () => Promise<T>): () => Promise<T | undefined> {
  let running: Promise<T | undefined> | undefined
  return () => {
    running ??= read()
      .catch(() => undefined)
      .finally(() => {
        running = undefined
      })
    return running
  }
}

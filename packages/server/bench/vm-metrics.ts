/**
 * Measures the metrics of 10,000 running VMs: the CPU time for storing a sample of each VM per minute and for
 * packing an hour of samples, the stored size of a day of samples, and the response time of a 24-hour chart.
 * This process is the only one that stores and packs samples: the service beside it only answers requests.
 */
import { parseArgs } from 'node:util'
import { gpuMetricNames, type hostMetrics } from '@slipway/contract'
import type { Engine, VmSample } from '../src/engines/engine.ts'
import { type Embedded, openEmbedded } from '../src/postgres/embedded/index.ts'
import { packSamples, sampleLocation } from '../src/reconcile/samples.ts'
import type { Services } from '../src/services.ts'
import { familyCpuMs } from './cpu.ts'
import { addTenants, createVms } from './fixtures.ts'
import { locations, RunningService } from './running-service.ts'

const { values } = parseArgs({ options: { vms: { type: 'string', default: '10000' } } })
const vmCount = Number(values.vms)
const sampledMinutes = 60
const requests = 100
const location = locations[0]
const hourS = 3_600
/** Chunks are copied in this many statements, because the service allows a statement only a few seconds. */
const copiedParts = 20

const service = new RunningService(8)
let embedded: Embedded | undefined
try {
  await service.start()
  // Without this, PostgreSQL would stop together with the last server.
  embedded = await openEmbedded({ dataDir: service.dataDir, log: console.error })
  const [tenant] = await addTenants(service.database, 'metrics', 1, 1)
  const [template] = await createVms(service, [tenant!], 1)
  // A worker would find no engine object of the copies, and would pack the samples itself.
  await service.main.stop()
  service.main = await service.startProcess('api')
  const ids = await copyVm(template!.vmId)
  const services = {
    database: service.database,
    engines: new Map([[location, busyEngine(ids)]]),
  } as unknown as Services
  const hour = Math.floor(Date.now() / 1000 / hourS) * hourS

  const stored = await cpuOf(async () => {
    for (let minute = 0; minute < sampledMinutes; minute++) {
      await setClock(hour + minute * 60)
      await sampleLocation(services, location, AbortSignal.timeout(600_000))
    }
  })
  const perMinute = stored / sampledMinutes
  show(
    'storing a sample of each VM, CPU per minute',
    perMinute,
    'ms',
    `${((perMinute / 60_000) * 100).toFixed(2)} % of a core`,
  )

  await setClock(hour + hourS + 60)
  const packed = await cpuOf(() => packSamples(services, AbortSignal.timeout(600_000)))
  show('packing an hour, CPU', packed, 'ms', `${((packed / (hourS * 1000)) * 100).toFixed(2)} % of a core`)
  console.log(
    `  together ${(((perMinute * 60 + packed) / (hourS * 1000)) * 100).toFixed(2)} % of a core  [≤ 5 %]`,
  )

  await requirePacked(ids, hour)

  await repeatChunks(23)
  const bytes = await sizeOf('vm_sample_chunks')
  show(
    'size of 24 hours at 60 s and 300 s',
    bytes / 1e6,
    'MB',
    `${(bytes / vmCount / 1024).toFixed(0)} KiB per VM`,
  )

  const end = new Date((hour + hourS) * 1000).toISOString()
  const start = new Date((hour + hourS - 24 * hourS) * 1000).toISOString()
  const chart = `names=DCGM_FI_DEV_GPU_UTIL,DCGM_FI_DEV_POWER_USAGE,slipway_vm_memory_bytes`
  for (const [what, query] of [
    ['a chart of 24 hours, 3 metrics', `${chart}&start=${start}&end=${end}`],
    ['24 hours of all metrics', `start=${start}&end=${end}`],
  ] as const) {
    const times = await timesOf(
      tenant!.token,
      (id) => `/v0.1/projects/${tenant!.projectId}/vms/${id}/metrics?${query}`,
      ids,
    )
    show(
      `GET ${what}, p50`,
      times[Math.floor(times.length / 2)]!,
      'ms',
      `p99 ${times.at(-2)!.toFixed(1)} ms  [p50 ≤ 50 ms]`,
    )
  }
} catch (error) {
  console.error(service.endsOfLogs())
  throw error
} finally {
  await embedded?.stop()
  await service.close()
}

function show(what: string, value: number, unit: string, more: string): void {
  console.log(`${what}: ${value.toFixed(1)} ${unit} (${more})`)
}

/** Returns an engine whose VMs have one, two or four GPUs, all busy. */
function busyEngine(ids: string[]): Pick<Engine, 'sample'> {
  let round = 0
  return {
    async *sample(): AsyncIterable<VmSample> {
      round++
      for (const [index, vmId] of ids.entries()) {
        const value = (seed: number) => Math.round(Math.abs(Math.sin(round / 10 + index + seed)) * 1e5) / 1e3
        const host: Partial<Record<keyof typeof hostMetrics, number>> = {
          slipway_vm_cpu_seconds_total: round * 600 + value(1),
          slipway_vm_memory_bytes: 8e10 + Math.round(value(2) * 1e8),
          slipway_vm_disk_read_bytes_total: round * 2_400_000_000,
          slipway_vm_disk_written_bytes_total: round * 600_000_000,
          slipway_vm_network_receive_bytes_total: round * 300_000_000,
          slipway_vm_network_transmit_bytes_total: round * 60_000_000,
        }
        const gpus = Array.from({ length: 2 ** (index % 3) }, (_, gpu) => ({
          uuid: `GPU-${index}-${gpu}`,
          name: 'NVIDIA H200',
          values: gpuMetricNames.map((_, i) => Math.round(value(gpu * 8 + i))),
          recovery: null,
        }))
        yield { vmId, host, guest: { sshSessions: 0, gpus, boot: '', xids: [] } }
      }
    },
  }
}

/** Copies a VM's row. Nothing else is copied, because sampling reads only this table. */
async function copyVm(id: string): Promise<string[]> {
  const changed: Record<string, string> = {
    id: 'gen_random_uuid()',
    name: `'copy-' || n`,
    mac_address: `'copy-' || n`,
    private_address: `'10.0.0.0'::inet + n`,
    public_address: 'NULL',
    public_address_id: 'NULL',
    interface_id: 'gen_random_uuid()',
    os_disk_id: 'gen_random_uuid()',
  }
  return service.database.transaction(async (tx) => {
    await tx.query({ text: 'SET LOCAL session_replication_role = replica' })
    const { rows: columns } = await tx.query({
      text: `SELECT column_name AS name FROM information_schema.columns WHERE table_name = 'vms' AND is_generated = 'NEVER'`,
    })
    const names = columns.map(({ name }) => name as string)
    const { rows } = await tx.query({
      text: `INSERT INTO vms (${names.join(', ')}) SELECT ${names.map((name) => changed[name] ?? name).join(', ')}
             FROM vms, generate_series(1, $2) n WHERE id = $1 RETURNING id`,
      values: [id, vmCount],
    })
    return rows.map((row) => row.id as string)
  })
}

/** Throws if samples of the hour remain, or if a VM does not have one chunk of each resolution. */
async function requirePacked(ids: string[], hour: number): Promise<void> {
  const { rows } = await service.database.query({
    text: `SELECT (SELECT count(*) FROM vm_samples WHERE at < to_timestamp($2) + interval '1 hour')::integer AS samples,
             (SELECT count(*) FROM vm_sample_chunks WHERE hour = to_timestamp($2) AND vm_id = ANY ($1))::integer AS chunks`,
    values: [ids, hour],
  })
  const { samples, chunks } = rows[0]
  if (samples !== 0 || chunks !== 2 * ids.length)
    throw new Error(`${samples} samples are not packed; ${chunks} chunks instead of ${2 * ids.length}`)
}

/** Copies the packed hour to the hours before it. */
async function repeatChunks(hours: number): Promise<void> {
  for (let k = 1; k <= hours; k++)
    for (let part = 0; part < copiedParts; part++)
      await service.database.query({
        text: `INSERT INTO vm_sample_chunks (vm_id, hour, step, data)
               SELECT vm_id, hour - $1 * interval '1 hour', step, json_build_object('t',
                 (SELECT json_agg(e::float8 - $1 * 3600) FROM json_array_elements_text(data -> 't') e), 'h', data -> 'h', 'g', data -> 'g')
               FROM vm_sample_chunks WHERE hour = (SELECT max(hour) FROM vm_sample_chunks)
                 AND abs(hashtext(vm_id::text)) % ${copiedParts} = $2`,
        values: [k, part],
      })
  await service.database.query({ text: 'ANALYZE vm_sample_chunks' })
}

async function setClock(seconds: number): Promise<void> {
  await service.database.query({
    text: 'UPDATE clock SET frozen_at = to_timestamp($1)',
    values: [seconds],
  })
}

async function sizeOf(table: string): Promise<number> {
  const { rows } = await service.database.query({
    text: 'SELECT pg_total_relation_size($1)::float8 AS bytes',
    values: [table],
  })
  return rows[0].bytes
}

/** Returns the CPU time of this process and of PostgreSQL during the work, in milliseconds. */
async function cpuOf(work: () => Promise<unknown>): Promise<number> {
  const [ownBefore, postgresBefore] = [process.cpuUsage(), familyCpuMs(service.postmaster)]
  await work()
  const own = process.cpuUsage(ownBefore)
  return (own.user + own.system) / 1000 + familyCpuMs(service.postmaster) - postgresBefore
}

/** Sends the request for one VM after another. Returns the response times in ascending order. */
async function timesOf(token: string, pathOf: (id: string) => string, ids: string[]): Promise<number[]> {
  const times: number[] = []
  for (let count = 0; count < requests; count++) {
    const id = ids[(count * 7919) % ids.length]!
    const startedAt = performance.now()
    const response = await fetch(`${service.main.url}${pathOf(id)}`, {
      headers: { authorization: `Bearer ${token}` },
    })
    await response.arrayBuffer()
    if (!response.ok) throw new Error(`status ${response.status}`)
    times.push(performance.now() - startedAt)
  }
  return times.toSorted((one, other) => one - other)
}

import type { Chunk, PackedHour, SampleData } from '../../domain/guest/samples.ts'
import type { Queryable, Tx } from '../../postgres/database.ts'
import { statement } from '../../postgres/statement.ts'

export interface NewSample {
  vm_id: string
  data: SampleData
  /** Null if the guest reported nothing. */
  gpus: { uuid: string; name: string }[] | null
}

// Skips VMs that have no row in this location, and a second sample for the same minute.
const insert = statement<never, { location: string; samples: string }>(
  'vm_sample_insert',
  `INSERT INTO vm_samples (vm_id, at, data)
   SELECT g.vm_id, date_trunc('minute', m.now), g.data
   FROM json_to_recordset(:samples::json) AS g (vm_id uuid, data json), moment m
   WHERE (SELECT true FROM vms v WHERE v.id = g.vm_id AND v.location = :location AND v.deleted_at IS NULL)
   ON CONFLICT DO NOTHING`,
)

// Writes only the rows that changed.
const putGuests = statement<never, { location: string; samples: string }>(
  'vm_guest_put',
  `INSERT INTO vm_guests (vm_id, gpus)
   SELECT g.vm_id, g.gpus FROM json_to_recordset(:samples::json) AS g (vm_id uuid, gpus jsonb)
   WHERE g.gpus IS NOT NULL AND (SELECT gpus FROM vm_guests k WHERE k.vm_id = g.vm_id) IS DISTINCT FROM g.gpus
     AND (SELECT true FROM vms v WHERE v.id = g.vm_id AND v.location = :location AND v.deleted_at IS NULL)
   ORDER BY g.vm_id
   ON CONFLICT (vm_id) DO UPDATE SET gpus = excluded.gpus`,
)

/** Stores one sample of each VM, at the service's time. */
export async function insertSamples(db: Queryable, location: string, samples: NewSample[]): Promise<void> {
  const rows = samples.map(({ vm_id, data }) => ({ vm_id, data }))
  const guests = samples.map(({ vm_id, gpus }) => ({ vm_id, gpus }))
  await Promise.all([
    insert.run(db, { location, samples: JSON.stringify(rows) }),
    putGuests.run(db, { location, samples: JSON.stringify(guests) }),
  ])
}

interface TimedSample {
  vm_id: string
  /** Seconds since 1970. */
  at: number
  data: SampleData
}

const columns = 's.vm_id, extract(epoch FROM s.at)::float8 AS at, s.data'

export const listSamples = statement<TimedSample, { vmIds: string[]; start: Date; end: Date }>(
  'vm_sample_list',
  `SELECT ${columns} FROM vm_samples s
   WHERE s.vm_id = ANY (:vmIds::uuid[]) AND s.at BETWEEN :start AND :end ORDER BY s.vm_id, s.at`,
).allBy('vmIds', 'start', 'end')

/** Lists the chunks that can contain samples of this period. */
export const listChunks = statement<
  { vm_id: string; data: Chunk },
  { vmIds: string[]; step: number; start: Date; end: Date }
>(
  'vm_sample_chunk_list',
  `SELECT c.vm_id, c.data FROM vm_sample_chunks c
   WHERE c.vm_id = ANY (:vmIds::uuid[]) AND c.step = :step
     AND c.hour BETWEEN date_trunc('hour', :start::timestamptz) AND :end ORDER BY c.vm_id, c.hour`,
).allBy('vmIds', 'step', 'start', 'end')

/**
 * Deletes and returns the samples of complete hours, for the few VMs with the oldest samples. A concurrent
 * process waits or takes other VMs.
 */
export const takeOldSamples = statement<TimedSample, { vms: number }, Tx>(
  'vm_sample_take',
  `WITH bound AS MATERIALIZED (SELECT date_trunc('hour', slipway_now()) AS hour),
   old AS MATERIALIZED (
     SELECT DISTINCT vm_id FROM (
       SELECT vm_id FROM vm_samples WHERE at < (SELECT hour FROM bound) ORDER BY at LIMIT :vms) first)
   DELETE FROM vm_samples s USING old
   WHERE s.vm_id = old.vm_id AND s.at < (SELECT hour FROM bound)
   RETURNING ${columns}`,
).allBy('vms')

const insertChunk = statement<never, { chunks: string }, Tx>(
  'vm_sample_chunk_insert',
  `INSERT INTO vm_sample_chunks (vm_id, hour, step, data, gpu_values, gpu_peak)
   SELECT g.vm_id, to_timestamp(g.hour), g.step, g.data, g.gpu_values, g.gpu_peak
   FROM json_to_recordset(:chunks::json)
     AS g (vm_id uuid, hour float8, step integer, data json, gpu_values integer, gpu_peak real)`,
)

export const insertChunks = (tx: Tx, chunks: ({ vm_id: string } & PackedHour)[]): Promise<number> =>
  insertChunk.run(tx, { chunks: JSON.stringify(chunks) })

const pruneChunks = (name: string, step: number, kept: string) =>
  statement<never, { limit: number }>(
    name,
    `DELETE FROM vm_sample_chunks WHERE ctid IN (
       SELECT ctid FROM vm_sample_chunks WHERE step = ${step} AND hour < slipway_now() - interval '${kept}'
       ORDER BY hour LIMIT :limit)`,
  ).runBy('limit')

/** A chunk covers an hour, so it is kept for an hour longer than its first sample. */
export const chunkPrunes = [
  pruneChunks('vm_sample_prune_60', 60, '25 hours'),
  pruneChunks('vm_sample_prune_300', 300, '361 hours'),
]

export interface LatestSample {
  vm_id: string
  name: string
  state: string
  gpus: { uuid: string; name: string }[] | null
  /** Null if the VM has no recent sample. */
  at: number | null
  data: SampleData | null
  /** How often each XID error was reported; null if there was none. */
  xids: Record<string, number> | null
}

/** Lists the VMs of a project with their newest sample of the last five minutes. */
export const listLatestSamples = statement<LatestSample, { projectId: string }>(
  'vm_sample_latest',
  `SELECT v.id AS vm_id, v.name, v.state, k.gpus, l.at, l.data,
          (SELECT json_object_agg(x.xid, x.count) FROM (
             SELECT f.xid, count(*) AS count FROM gpu_faults f WHERE f.vm_id = v.id AND f.xid > 0 GROUP BY f.xid) x) AS xids
   FROM vms v
   LEFT JOIN vm_guests k ON k.vm_id = v.id
   LEFT JOIN LATERAL (SELECT ${columns} FROM vm_samples s
                      WHERE s.vm_id = v.id AND s.at > slipway_now() - interval '5 minutes'
                      ORDER BY s.at DESC LIMIT 1) l ON true
   WHERE v.project_id = :projectId AND v.deleted_at IS NULL ORDER BY v.id`,
).allBy('projectId')

export interface MeasuredVm {
  id: string
  name: string
  gpus: { uuid: string; name: string }[] | null
}

/** Finds VMs of a project for their metrics. */
export const listMeasuredVms = statement<MeasuredVm, { projectId: string; ids: string[] }>(
  'vm_metrics_vms',
  `SELECT v.id, v.name, k.gpus FROM vms v LEFT JOIN vm_guests k ON k.vm_id = v.id
   WHERE v.id = ANY (:ids::uuid[]) AND v.project_id = :projectId AND v.deleted_at IS NULL ORDER BY v.id DESC`,
).allBy('projectId', 'ids')

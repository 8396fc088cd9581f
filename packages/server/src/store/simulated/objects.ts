import type { Queryable } from '../../postgres/database.ts'
import { keyedStatement, sharedRead } from '../../postgres/keyed.ts'
import { statement } from '../../postgres/statement.ts'

/** A VM of the simulated engine. Only that engine uses this file. */
export interface SimulatedVm {
  id: string
  location: string
  host: string
  generation: number
  is_removed: boolean
  spec: Record<string, unknown>
  power: 'off' | 'on' | 'shutdown' | 'crashed'
  /** Milliseconds until booting or shutting down ends; negative if it has ended. */
  ready_in_ms: number | null
  is_host_lost: boolean
  gpus: string[]
  firewall: unknown[]
  firewall_generation: number
}

/** The host of a VM, and the generation of the call. */
export interface SimulatedPlacement {
  id: string
  location: string
  host: string
  generation: number
}

const vmColumns = `
  v.id, v.location, v.host, v.generation, v.is_removed, v.spec, v.power, v.gpus, v.firewall, v.firewall_generation,
  (extract(epoch FROM v.ready_at - slipway_now()) * 1000)::float8 AS ready_in_ms`

const find = keyedStatement<SimulatedVm, { id: string }>(
  'simulated_vm',
  `SELECT ${vmColumns}, coalesce(h.is_lost, false) AS is_host_lost
   FROM simulated_vms v LEFT JOIN simulated_hosts h ON h.location = v.location AND h.name = v.host
   WHERE v.id = ANY (:id::uuid[])`,
)

// In a FROM clause, this lets the statement commit without waiting for the disk. A transaction that depends on the
// statement commits later, and that commit also writes this statement's changes to disk. Work that a crash loses is
// repeated.
const withoutFlush = `set_config('synchronous_commit', 'off', true)`

// Defines new VMs, updates those that are off, and starts them if wanted. Each change needs a generation that
// is not older than the newest one seen, and a host that is not lost. A VM that is not off changes only its
// firewall, and only to a newer one. Rows are written in id order, so that two batches never deadlock. The
// scalar subqueries run once for each VM; with EXISTS, PostgreSQL would use joins that read all hosts and VMs
// if there are few.
const isOff = `(v.power = 'off' OR v.power = 'shutdown' AND v.ready_at <= slipway_now())`
const isStarting = `(${isOff} AND excluded.power = 'on')`
const put = statement<SimulatedVm, { vms: string }>(
  'simulated_vm_put',
  `INSERT INTO simulated_vms AS v
     (id, location, host, generation, spec, gpus, firewall, firewall_generation, power, ready_at, serial)
   SELECT g.id, g.location, g.host, g.generation, g.spec, g.gpus, g.firewall, g."firewallGeneration", g.power,
          CASE g.power WHEN 'on' THEN (SELECT now FROM moment) + g."readyInMs" * interval '1 millisecond' END,
          CASE g.power WHEN 'on' THEN g.lines ELSE '' END
   FROM ${withoutFlush}, json_to_recordset(:vms::json) AS g (id uuid, location text, host text, generation bigint,
     spec jsonb, gpus text[], "isNew" boolean, firewall jsonb, "firewallGeneration" bigint, power text,
     "readyInMs" float8, lines text)
   WHERE (g."isNew" OR (SELECT true FROM simulated_vms k WHERE k.id = g.id))
     AND (SELECT h.is_lost FROM simulated_hosts h WHERE h.location = g.location AND h.name = g.host) IS NOT TRUE
   ORDER BY g.id
   ON CONFLICT (id) DO UPDATE SET generation = excluded.generation,
     host = CASE WHEN ${isOff} THEN excluded.host ELSE v.host END,
     spec = CASE WHEN ${isOff} THEN excluded.spec ELSE v.spec END,
     gpus = CASE WHEN ${isOff} THEN excluded.gpus ELSE v.gpus END,
     firewall = CASE WHEN v.firewall_generation <= excluded.firewall_generation THEN excluded.firewall ELSE v.firewall END,
     firewall_generation = greatest(v.firewall_generation, excluded.firewall_generation),
     power = CASE WHEN ${isStarting} THEN 'on' ELSE v.power END,
     ready_at = CASE WHEN ${isStarting} THEN excluded.ready_at ELSE v.ready_at END,
     serial = CASE WHEN ${isStarting} THEN right(v.serial || excluded.serial, 1048576) ELSE v.serial END
   WHERE v.generation <= excluded.generation AND NOT v.is_removed
   RETURNING ${vmColumns}, false AS is_host_lost`,
)

/** The wanted state of a VM. */
export interface WantedVm extends SimulatedPlacement {
  spec: unknown
  gpus: string[]
  isNew: boolean
  firewall: unknown[]
  firewallGeneration: number
  power: 'on' | 'off'
  /** The duration of the VM's boot, and its serial output. */
  readyInMs: number
  lines: string
}

const power = statement<
  { id: string },
  { id: string; generation: number; power: SimulatedVm['power']; readyInMs: number; lines: string }
>(
  'simulated_vm_power',
  `UPDATE simulated_vms SET generation = :generation, power = :power,
          ready_at = slipway_now() + :readyInMs * interval '1 millisecond', serial = right(serial || :lines, 1048576)
   WHERE id = :id AND generation <= :generation AND NOT is_removed RETURNING id`,
)

// A call without an effect still raises the generation, so that older calls are rejected.
const see = statement<{ id: string }, { id: string; generation: number }>(
  'simulated_vm_see',
  `UPDATE simulated_vms SET generation = :generation
   WHERE id = :id AND generation <= :generation AND NOT is_removed RETURNING id`,
)

// The row of a removed VM is kept, so that a late call with an older generation is rejected.
const remove = statement<{ id: string }, { vms: string; resetMs: number }>(
  'simulated_vm_remove',
  `WITH given AS MATERIALIZED (
     SELECT * FROM json_to_recordset(:vms::json) AS g (id uuid, location text, host text, generation bigint)),
   removed AS (
     INSERT INTO simulated_vms AS v (id, location, host, generation, spec, is_removed, removed_at)
     SELECT g.id, g.location, g.host, g.generation, '{}', true, slipway_now() FROM ${withoutFlush}, given g
     WHERE (SELECT h.is_lost FROM simulated_vms k JOIN simulated_hosts h ON h.location = k.location AND h.name = k.host
            WHERE k.id = g.id) IS NOT TRUE
     ORDER BY g.id
     ON CONFLICT (id) DO UPDATE
     SET generation = excluded.generation, is_removed = true, power = 'off', removed_at = slipway_now()
     WHERE v.generation <= excluded.generation RETURNING id),
   resets AS (
     INSERT INTO simulated_gpu_resets (location, host, pci_address, clean_at)
     SELECT v.location, v.host, pci, slipway_now() + :resetMs * interval '1 millisecond'
     FROM removed, LATERAL (SELECT * FROM simulated_vms k WHERE k.id = removed.id AND NOT k.is_removed LIMIT 1) v,
       unnest(v.gpus) pci
     ORDER BY v.location, v.host, pci
     ON CONFLICT (location, host, pci_address) DO UPDATE SET clean_at = excluded.clean_at)
   SELECT id FROM removed`,
)

const setFirewall = statement<{ id: string }, { id: string; generation: number; rules: string }>(
  'simulated_vm_firewall',
  `UPDATE simulated_vms v SET firewall = :rules, firewall_generation = :generation
   WHERE id = :id AND firewall_generation <= :generation AND NOT is_removed
     AND NOT EXISTS (SELECT FROM simulated_hosts h WHERE h.location = v.location AND h.name = v.host AND h.is_lost)
   RETURNING id`,
)

const setDisks = statement<{ id: string }, { id: string; generation: number; attached: string }>(
  'simulated_vm_disks',
  `UPDATE simulated_vms SET generation = :generation, spec = jsonb_set(spec, '{disks}', :attached::jsonb)
   WHERE id = :id AND generation <= :generation AND NOT is_removed RETURNING id`,
)

const setPublicAddress = statement<{ id: string }, { id: string; generation: number; address: string }>(
  'simulated_vm_public_address',
  `UPDATE simulated_vms
   SET generation = :generation, spec = jsonb_set(spec, '{network,publicAddress}', to_jsonb(:address::text))
   WHERE id = :id AND generation <= :generation AND NOT is_removed RETURNING id`,
)

const serial = statement<{ serial: string }, { id: string }>(
  'simulated_vm_serial',
  'SELECT serial FROM simulated_vms WHERE id = :id AND NOT is_removed',
)

const appendSerial = statement<never, { id: string; text: string }>(
  'simulated_vm_append_serial',
  `UPDATE simulated_vms SET serial = right(serial || :text, 1048576) WHERE id = :id AND NOT is_removed`,
)

const crash = statement<{ id: string }, { id: string; lines: string }>(
  'simulated_vm_crash',
  `UPDATE simulated_vms SET power = 'crashed', serial = right(serial || :lines, 1048576)
   WHERE id = :id AND NOT is_removed AND power = 'on' RETURNING id`,
)

const putDisk = statement<
  { id: string },
  { id: string; location: string; generation: number; sizeGib: number }
>(
  'simulated_disk_put',
  `INSERT INTO simulated_disks AS d (id, location, generation, size_gib) VALUES (:id, :location, :generation, :sizeGib)
   ON CONFLICT (id) DO UPDATE SET generation = :generation, size_gib = greatest(d.size_gib, :sizeGib)
   WHERE d.generation <= :generation AND NOT d.is_removed RETURNING id`,
)

const removeDisk = statement<{ id: string }, { id: string; location: string; generation: number }>(
  'simulated_disk_remove',
  `INSERT INTO simulated_disks AS d (id, location, generation, size_gib, is_removed)
   VALUES (:id, :location, :generation, 0, true)
   ON CONFLICT (id) DO UPDATE SET generation = :generation, is_removed = true
   WHERE d.generation <= :generation RETURNING id`,
)

const findDisk = statement<{ is_removed: boolean; size_gib: number; generation: number }, { id: string }>(
  'simulated_disk',
  'SELECT is_removed, size_gib, generation FROM simulated_disks WHERE id = :id',
)

/** A copy of a disk. */
interface SimulatedCapture {
  generation: number
  stored_bytes: number
  consistency: 'off' | 'frozen' | 'crash'
  is_removed: boolean
}

const findCapture = statement<SimulatedCapture, { id: string }>(
  'simulated_capture',
  'SELECT generation, stored_bytes, consistency, is_removed FROM simulated_captures WHERE id = :id',
)

const putCapture = statement<
  { id: string },
  { id: string; location: string; generation: number; storedBytes: number; consistency: string }
>(
  'simulated_capture_put',
  `INSERT INTO simulated_captures AS c (id, location, generation, stored_bytes, consistency)
   VALUES (:id, :location, :generation, :storedBytes, :consistency)
   ON CONFLICT (id) DO UPDATE SET generation = :generation
   WHERE c.generation <= :generation AND NOT c.is_removed RETURNING id`,
)

const removeCapture = statement<{ id: string }, { id: string; location: string; generation: number }>(
  'simulated_capture_remove',
  `INSERT INTO simulated_captures AS c (id, location, generation, stored_bytes, consistency, is_removed)
   VALUES (:id, :location, :generation, 0, 'off', true)
   ON CONFLICT (id) DO UPDATE SET generation = :generation, is_removed = true
   WHERE c.generation <= :generation RETURNING id`,
)

const captures = statement<{ id: string; generation: number }, { location: string }>(
  'simulated_captures',
  'SELECT id, generation FROM simulated_captures WHERE location = :location AND NOT is_removed',
)

const anyAgent = statement<{ any: boolean }>(
  'simulated_guest_agent',
  'SELECT EXISTS (SELECT FROM simulated_guest_agent) AS any',
)
const installAgent = statement(
  'simulated_guest_agent_install',
  'INSERT INTO simulated_guest_agent (is_present) VALUES (true) ON CONFLICT DO NOTHING',
)
const removeAgent = statement('simulated_guest_agent_remove', 'DELETE FROM simulated_guest_agent')

export interface SimulatedHost {
  name: string
  model: string
  gpu_count: number
  /** The errors that the host itself reports for its GPUs. */
  xids: { pci_address: string; xid: number; at: string }[]
}

const hosts = statement<SimulatedHost, { location: string; afterName: string; limit: number }>(
  'simulated_hosts',
  `SELECT h.name, h.model, h.gpu_count,
          coalesce((SELECT json_agg(json_build_object('pci_address', x.pci_address, 'xid', x.xid,
                      'at', to_char(x.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')) ORDER BY x.id)
                    FROM simulated_xids x
                    WHERE x.location = h.location AND x.host = h.name AND x.source = 'host'), '[]') AS xids
   FROM simulated_hosts h
   WHERE h.location = :location AND NOT h.is_lost AND h.name > :afterName ORDER BY h.name LIMIT :limit`,
)

/** The VMs of a host, and its GPUs that are not reset yet. */
export interface SimulatedContents {
  host: string
  vms: Pick<SimulatedVm, 'id' | 'generation' | 'power' | 'gpus' | 'firewall_generation' | 'ready_in_ms'>[]
  dirty: string[]
}

// Does not read the specs of the VMs, which are much larger than these columns.
const contents = statement<SimulatedContents, { location: string; hosts: string[] }>(
  'simulated_contents',
  `SELECT w.host,
          coalesce((SELECT json_agg(json_build_object('id', v.id, 'generation', v.generation, 'power', v.power,
                      'gpus', v.gpus, 'firewall_generation', v.firewall_generation,
                      'ready_in_ms', (extract(epoch FROM v.ready_at - t.now) * 1000)::float8))
                    FROM simulated_vms v
                    WHERE v.location = :location AND v.host = w.host AND NOT v.is_removed), '[]') AS vms,
          ARRAY(SELECT r.pci_address FROM simulated_gpu_resets r
                WHERE r.location = :location AND r.host = w.host AND r.clean_at > t.now) AS dirty
   FROM unnest(:hosts::text[]) AS w (host) CROSS JOIN moment t`,
)

/** What the guest of a simulated VM reports. */
export type SimulatedMetrics = { gpu_utilization: number; ssh_sessions?: number } | { silent: true }

export interface RunningVm {
  id: string
  gpus: string[]
  model: string
  memory_gb: number
  cpu_cores: number
  metrics: SimulatedMetrics | null
  boot: string
  xids: { gpuIndex: number; xid: number; position: number }[]
  /** The current time in seconds since 1970, and how many seconds the VM has been up. */
  now_s: number
  up_s: number
}

const running = statement<RunningVm, { location: string; afterId: string; limit: number }>(
  'simulated_running',
  `SELECT v.id, v.gpus, coalesce(v.spec #>> '{gpus,0,model}', '') AS model,
          coalesce((v.spec ->> 'memoryGb')::float8, 1) AS memory_gb, coalesce((v.spec ->> 'cpuCores')::float8, 1) AS cpu_cores,
          v.ready_at::text AS boot,
          coalesce((SELECT json_agg(json_build_object('gpuIndex', x.gpu_index, 'xid', x.xid, 'position', x.id) ORDER BY x.id)
                    FROM simulated_xids x
                    WHERE x.vm_id = v.id AND x.source = 'guest' AND x.created_at >= v.ready_at), '[]') AS xids,
          v.metrics, extract(epoch FROM t.now)::float8 AS now_s, extract(epoch FROM t.now - v.ready_at)::float8 AS up_s
   FROM simulated_vms v CROSS JOIN moment t
   WHERE v.location = :location AND v.id > :afterId AND v.power = 'on' AND NOT v.is_removed AND v.ready_at <= t.now
   ORDER BY v.id LIMIT :limit`,
)

const setMetrics = statement<never, { id: string; metrics: string }>(
  'simulated_vm_metrics',
  'UPDATE simulated_vms SET metrics = :metrics::jsonb WHERE id = :id AND NOT is_removed',
)

const disks = statement<{ id: string; generation: number; sizeGib: number }, { location: string }>(
  'simulated_disks',
  'SELECT id, generation, size_gib AS "sizeGib" FROM simulated_disks WHERE location = :location AND NOT is_removed',
)

const clearHost = statement<never, { location: string; name: string }>(
  'simulated_host_clear',
  'DELETE FROM simulated_vms WHERE location = :location AND host = :name',
)

const loseHost = statement<never, { location: string; name: string; isLost: boolean }>(
  'simulated_host_lose',
  'UPDATE simulated_hosts SET is_lost = :isLost WHERE location = :location AND name = :name',
)

export interface SimulatedFault {
  method: string
  /** Null if the fault affects the next calls for any resource. */
  resourceId: string | null
  kind: 'fail' | 'reject' | 'lie' | 'forget' | 'delay'
  delayMs: number
  times: number
}

const addFault = statement<never, SimulatedFault>(
  'simulated_fault_add',
  `INSERT INTO simulated_faults (method, resource_id, kind, delay_ms, remaining)
   VALUES (:method, :resourceId, :kind, :delayMs, :times)`,
)

const takeFault = statement<
  { kind: SimulatedFault['kind']; delay_ms: number },
  { method: string; resourceId: string }
>(
  'simulated_fault_take',
  `UPDATE simulated_faults SET remaining = remaining - 1
   WHERE id = (SELECT id FROM simulated_faults
               WHERE remaining > 0 AND method = :method AND (resource_id IS NULL OR resource_id = :resourceId)
               ORDER BY id LIMIT 1 FOR UPDATE)
   RETURNING kind, delay_ms`,
)

const anyFault = statement<{ any: boolean }>(
  'simulated_fault_any',
  'SELECT EXISTS (SELECT FROM simulated_faults WHERE remaining > 0) AS any',
)
const findAnyFault = sharedRead(async (db, _question: 'any') => (await anyFault.one(db))!.any)
const clearFaults = statement('simulated_fault_clear', 'DELETE FROM simulated_faults')

const prune = statement<never, { limit: number }>(
  'simulated_prune',
  `DELETE FROM simulated_vms WHERE id IN (
     SELECT id FROM simulated_vms WHERE is_removed AND removed_at < slipway_now() - interval '2 days'
     ORDER BY removed_at LIMIT :limit)`,
)

export const simulated = {
  findVm: (db: Queryable, id: string) => find.one(db, { id }),
  /** Returns the VMs that are in the wanted state. The list must not contain an id twice. */
  putVms: (db: Queryable, vms: WantedVm[]) => put.all(db, { vms: JSON.stringify(vms) }),
  setPower: power.oneBy('id', 'generation', 'power', 'readyInMs', 'lines'),
  seeVm: see.oneBy('id', 'generation'),
  /** Returns the ids of the VMs that are removed. The list must not contain an id twice. */
  removeVms: (db: Queryable, vms: SimulatedPlacement[], resetMs: number) =>
    remove.all(db, { vms: JSON.stringify(vms), resetMs }),
  setFirewall: (db: Queryable, id: string, generation: number, rules: unknown[]) =>
    setFirewall.one(db, { id, generation, rules: JSON.stringify(rules) }),
  setDisks: (db: Queryable, id: string, generation: number, attached: unknown[]) =>
    setDisks.one(db, { id, generation, attached: JSON.stringify(attached) }),
  setPublicAddress: setPublicAddress.oneBy('id', 'generation', 'address'),
  serial: async (db: Queryable, id: string) => (await serial.one(db, { id }))?.serial,
  appendSerial: appendSerial.runBy('id', 'text'),
  crash: crash.oneBy('id', 'lines'),
  findDisk: findDisk.oneBy('id'),
  putDisk: putDisk.one,
  removeDisk: removeDisk.one,
  findCapture: findCapture.oneBy('id'),
  putCapture: putCapture.one,
  removeCapture: removeCapture.one,
  listCaptures: captures.allBy('location'),
  hasGuestAgent: async (db: Queryable) => (await anyAgent.one(db))!.any,
  setGuestAgent: (db: Queryable, isPresent: boolean) => (isPresent ? installAgent : removeAgent).run(db),
  listHosts: hosts.allBy('location', 'afterName', 'limit'),
  listContents: contents.allBy('location', 'hosts'),
  listRunning: running.allBy('location', 'afterId', 'limit'),
  setMetrics: setMetrics.runBy('id', 'metrics'),
  listDisks: disks.allBy('location'),
  setHostLost: loseHost.runBy('location', 'name', 'isLost'),
  clearHost: clearHost.runBy('location', 'name'),
  addFault: addFault.run,
  takeFault: takeFault.oneBy('method', 'resourceId'),
  /** Concurrent calls share one read. */
  hasFaults: (db: Queryable) => findAnyFault(db, 'any'),
  clearFaults: clearFaults.runBy(),
  prune: prune.runBy('limit'),
}

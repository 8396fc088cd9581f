import { type Queryable, statement } from '../database.ts'

/** What the simulated engine remembers. Only that engine uses this file. */
export interface SimulatedVm {
  id: string
  location: string
  host: string
  generation: number
  is_removed: boolean
  spec: Record<string, unknown>
  power: 'off' | 'on' | 'shutdown' | 'crashed'
  /** When booting or shutting down ends, as a distance from now; negative when it has. */
  ready_in_ms: number | null
  is_host_lost: boolean
  gpus: string[]
  firewall: unknown[]
  firewall_generation: number
}

const selectVm = `
  SELECT v.id, v.location, v.host, v.generation, v.is_removed, v.spec, v.power, v.gpus, v.firewall, v.firewall_generation,
         (extract(epoch FROM v.ready_at - slipway_now()) * 1000)::float8 AS ready_in_ms,
         coalesce(h.is_lost, false) AS is_host_lost
  FROM simulated_vms v LEFT JOIN simulated_hosts h ON h.location = v.location AND h.name = v.host`

const find = statement<SimulatedVm, [string]>('simulated_vm', `${selectVm} WHERE v.id = $1`)

// Defines a VM, or redefines one, only under a generation that is not older than the newest seen.
const put = statement<{ id: string }, [string, string, string, number, string, string[]]>(
  'simulated_vm_put',
  `INSERT INTO simulated_vms AS v (id, location, host, generation, spec, gpus) VALUES ($1, $2, $3, $4, $5, $6)
   ON CONFLICT (id) DO UPDATE SET host = $3, generation = $4, spec = $5, gpus = $6
   WHERE v.generation <= $4 AND NOT v.is_removed RETURNING id`,
)

const power = statement<{ id: string }, [string, number, string, number, string]>(
  'simulated_vm_power',
  `UPDATE simulated_vms SET generation = $2, power = $3, ready_at = slipway_now() + $4 * interval '1 millisecond',
          serial = right(serial || $5, 1048576)
   WHERE id = $1 AND generation <= $2 AND NOT is_removed RETURNING id`,
)

// A call that has nothing to do still counts: older ones come too late from then on.
const see = statement<{ id: string }, [string, number]>(
  'simulated_vm_see',
  `UPDATE simulated_vms SET generation = $2 WHERE id = $1 AND generation <= $2 AND NOT is_removed RETURNING id`,
)

// Removal is remembered, so that whoever comes late with an older generation is refused.
const remove = statement<{ id: string }, [string, string, string, number, number]>(
  'simulated_vm_remove',
  `WITH gone AS (
     INSERT INTO simulated_vms AS v (id, location, host, generation, spec, is_removed, removed_at)
     VALUES ($1, $2, $3, $4, '{}', true, slipway_now())
     ON CONFLICT (id) DO UPDATE SET generation = $4, is_removed = true, power = 'off', removed_at = slipway_now()
     WHERE v.generation <= $4 RETURNING id),
   resets AS (
     INSERT INTO simulated_gpu_resets (location, host, pci_address, clean_at)
     SELECT v.location, v.host, pci, slipway_now() + $5 * interval '1 millisecond'
     FROM simulated_vms v, unnest(v.gpus) pci WHERE v.id = $1 AND NOT v.is_removed AND EXISTS (SELECT FROM gone)
     ON CONFLICT (location, host, pci_address) DO UPDATE SET clean_at = excluded.clean_at)
   SELECT id FROM gone`,
)

const setFirewall = statement<{ id: string }, [string, number, string]>(
  'simulated_vm_firewall',
  `UPDATE simulated_vms v SET firewall = $3, firewall_generation = $2
   WHERE id = $1 AND firewall_generation <= $2 AND NOT is_removed
     AND NOT EXISTS (SELECT FROM simulated_hosts h WHERE h.location = v.location AND h.name = v.host AND h.is_lost)
   RETURNING id`,
)

const setDisks = statement<{ id: string }, [string, number, string]>(
  'simulated_vm_disks',
  `UPDATE simulated_vms SET generation = $2, spec = jsonb_set(spec, '{disks}', $3::jsonb)
   WHERE id = $1 AND generation <= $2 AND NOT is_removed RETURNING id`,
)

const serial = statement<{ serial: string }, [string]>(
  'simulated_vm_serial',
  'SELECT serial FROM simulated_vms WHERE id = $1 AND NOT is_removed',
)

const crash = statement<{ id: string }, [string, string]>(
  'simulated_vm_crash',
  `UPDATE simulated_vms SET power = 'crashed', serial = right(serial || $2, 1048576)
   WHERE id = $1 AND NOT is_removed AND power = 'on' RETURNING id`,
)

const putDisk = statement<{ id: string }, [string, string, number, number]>(
  'simulated_disk_put',
  `INSERT INTO simulated_disks AS d (id, location, generation, size_gib) VALUES ($1, $2, $3, $4)
   ON CONFLICT (id) DO UPDATE SET generation = $3, size_gib = greatest(d.size_gib, $4)
   WHERE d.generation <= $3 AND NOT d.is_removed RETURNING id`,
)

const removeDisk = statement<{ id: string }, [string, string, number]>(
  'simulated_disk_remove',
  `INSERT INTO simulated_disks AS d (id, location, generation, size_gib, is_removed) VALUES ($1, $2, $3, 0, true)
   ON CONFLICT (id) DO UPDATE SET generation = $3, is_removed = true WHERE d.generation <= $3 RETURNING id`,
)

const findDisk = statement<{ is_removed: boolean; size_gib: number; generation: number }, [string]>(
  'simulated_disk',
  'SELECT is_removed, size_gib, generation FROM simulated_disks WHERE id = $1',
)

export interface SimulatedHost {
  name: string
  model: string
  gpu_count: number
  vms: SimulatedVm[]
  dirty: string[]
}

const hosts = statement<SimulatedHost, [string, string, number]>(
  'simulated_hosts',
  `SELECT h.name, h.model, h.gpu_count,
          coalesce((SELECT jsonb_agg(to_jsonb(s)) FROM (
             SELECT v.id, v.generation, v.power, v.gpus, v.spec, v.firewall_generation,
                    (extract(epoch FROM v.ready_at - slipway_now()) * 1000)::float8 AS ready_in_ms
             FROM simulated_vms v WHERE v.location = h.location AND v.host = h.name AND NOT v.is_removed) s), '[]') AS vms,
          ARRAY(SELECT r.pci_address FROM simulated_gpu_resets r
                WHERE r.location = h.location AND r.host = h.name AND r.clean_at > slipway_now()) AS dirty
   FROM simulated_hosts h WHERE h.location = $1 AND NOT h.is_lost AND h.name > $2 ORDER BY h.name LIMIT $3`,
)

const disks = statement<{ id: string; generation: number; sizeGib: number }, [string]>(
  'simulated_disks',
  'SELECT id, generation, size_gib AS "sizeGib" FROM simulated_disks WHERE location = $1 AND NOT is_removed',
)

const loseHost = statement<never, [string, string, boolean]>(
  'simulated_host_lose',
  'UPDATE simulated_hosts SET is_lost = $3 WHERE location = $1 AND name = $2',
)

export interface SimulatedFault {
  method: string
  /** Null: whichever resource comes next. */
  resourceId: string | null
  kind: 'fail' | 'reject' | 'lie' | 'forget' | 'delay'
  delayMs: number
  times: number
}

const addFault = statement<never, [string, string | null, string, number, number]>(
  'simulated_fault_add',
  'INSERT INTO simulated_faults (method, resource_id, kind, delay_ms, remaining) VALUES ($1, $2, $3, $4, $5)',
)

const takeFault = statement<{ kind: SimulatedFault['kind']; delay_ms: number }, [string, string]>(
  'simulated_fault_take',
  `UPDATE simulated_faults SET remaining = remaining - 1
   WHERE id = (SELECT id FROM simulated_faults
               WHERE remaining > 0 AND method = $1 AND (resource_id IS NULL OR resource_id = $2)
               ORDER BY id LIMIT 1 FOR UPDATE)
   RETURNING kind, delay_ms`,
)

const anyFault = statement<{ any: boolean }>(
  'simulated_fault_any',
  'SELECT EXISTS (SELECT FROM simulated_faults WHERE remaining > 0) AS any',
)
const clearFaults = statement('simulated_fault_clear', 'DELETE FROM simulated_faults')

const prune = statement<never, [number]>(
  'simulated_prune',
  `DELETE FROM simulated_vms WHERE id IN (
     SELECT id FROM simulated_vms WHERE is_removed AND removed_at < slipway_now() - interval '2 days' LIMIT $1)`,
)

export const simulated = {
  findVm: (db: Queryable, id: string) => find.one(db, id),
  putVm: (
    db: Queryable,
    vm: { id: string; location: string; host: string; generation: number; spec: unknown; gpus: string[] },
  ) => put.one(db, vm.id, vm.location, vm.host, vm.generation, JSON.stringify(vm.spec), vm.gpus),
  setPower: (
    db: Queryable,
    id: string,
    generation: number,
    to: SimulatedVm['power'],
    readyInMs: number,
    lines: string,
  ) => power.one(db, id, generation, to, readyInMs, lines),
  seeVm: (db: Queryable, id: string, generation: number) => see.one(db, id, generation),
  removeVm: (
    db: Queryable,
    vm: { id: string; location: string; host: string; generation: number },
    resetMs: number,
  ) => remove.one(db, vm.id, vm.location, vm.host, vm.generation, resetMs),
  setFirewall: (db: Queryable, id: string, generation: number, rules: unknown[]) =>
    setFirewall.one(db, id, generation, JSON.stringify(rules)),
  setDisks: (db: Queryable, id: string, generation: number, attached: unknown[]) =>
    setDisks.one(db, id, generation, JSON.stringify(attached)),
  serial: async (db: Queryable, id: string) => (await serial.one(db, id))?.serial,
  crash: (db: Queryable, id: string, lines: string) => crash.one(db, id, lines),
  findDisk: (db: Queryable, id: string) => findDisk.one(db, id),
  putDisk: (db: Queryable, disk: { id: string; location: string; generation: number; sizeGib: number }) =>
    putDisk.one(db, disk.id, disk.location, disk.generation, disk.sizeGib),
  removeDisk: (db: Queryable, disk: { id: string; location: string; generation: number }) =>
    removeDisk.one(db, disk.id, disk.location, disk.generation),
  listHosts: (db: Queryable, location: string, afterName: string, most: number) =>
    hosts.all(db, location, afterName, most),
  listDisks: (db: Queryable, location: string) => disks.all(db, location),
  setHostLost: (db: Queryable, location: string, name: string, isLost: boolean) =>
    loseHost.run(db, location, name, isLost),
  addFault: (db: Queryable, f: SimulatedFault) =>
    addFault.run(db, f.method, f.resourceId, f.kind, f.delayMs, f.times),
  takeFault: (db: Queryable, method: string, resourceId: string) => takeFault.one(db, method, resourceId),
  hasFaults: async (db: Queryable) => (await anyFault.one(db))!.any,
  clearFaults: (db: Queryable) => clearFaults.run(db),
  prune: (db: Queryable, most: number) => prune.run(db, most),
}

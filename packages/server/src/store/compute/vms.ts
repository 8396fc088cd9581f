import type { DiskState, GpuFaultPolicy, IdlePolicy, Labels, VmHealth, VmState } from '@slipway/contract'
import type { Queryable, Tx } from '../../postgres/database.ts'
import { gathered } from '../../postgres/gathered.ts'
import { keyedStatement } from '../../postgres/keyed.ts'
import { statement } from '../../postgres/statement.ts'
import { type NetworkFirewall, networkFirewall } from '../network/firewalls.ts'

export interface VmDiskRow {
  id: string
  name: string
  type: 'persistent-ssd' | 'shared-volume'
  size: string
  size_gib: number
  location: string
  block_size: number
  serial_number: string
  generation: number
  created_at: string
  updated_at: string
  mode: 'read-write' | 'read-only'
  state: DiskState
}

export interface VmRow {
  id: string
  project_id: string
  name: string
  type: string
  family: string
  gpu_count: number
  location: string
  state: VmState
  generation: number
  host_id: string | null
  host: string | null
  host_state: string | null
  image: string
  image_source: Record<string, unknown>
  ssh_public_keys: string[]
  /** The public half; '' if the guest created its own key. */
  ssh_host_key: string
  /** The private half, until the guest has it. */
  ssh_host_key_sealed: Buffer | null
  startup_script: string
  startup_script_sha256: string
  shutdown_script: string
  ssh_destination: string
  os_disk_id: string
  os_disk_size: string
  os_disk_gib: number
  interface_id: string
  network_id: string
  subnet_id: string
  mac_address: string
  private_address: string
  public_address: string | null
  public_address_id: string | null
  /** True if the public address is a reserved one. */
  is_address_static: boolean
  ttl_seconds: number | null
  on_expiry: 'stop' | 'delete'
  idle_policy: IdlePolicy | null
  idle_since: Date | null
  on_gpu_fault: GpuFaultPolicy
  /** Null if the VM is healthy or off. */
  health: VmHealth | null
  last_replaced_at: Date | null
  /** The time from which the VM is not billed because its host has lost a GPU. */
  billing_paused_at: Date | null
  expires_at: Date | null
  started_at: Date | null
  labels: Labels
  description: string
  is_protected: boolean
  firewall_wanted: number
  firewall_applied: number
  created_at: Date
  updated_at: Date
  deleted_at: Date | null
  /** Set if the VM's host no longer has the OS disk: the VM is neither billed nor started. */
  os_disk_lost_at: Date | null
  instance_template_id: string | null
  group_id: string | null
  group_number: number | null
  metered_since: Date | null
  /** The reservation that provides the VM's GPUs now. */
  reservation_id: string | null
  /** The custom image that the VM was created from. This id is kept when the image is deleted. */
  custom_image_id: string | null
  disks: VmDiskRow[]
}

/** SQL for the VM's disks, in the order in which they were attached. */
export const attachedDisksOfVm = `
         coalesce((SELECT jsonb_agg(jsonb_build_object('id', d.id, 'name', d.name, 'type', d.type, 'size', d.size,
                     'size_gib', d.size_gib, 'location', d.location, 'block_size', d.block_size,
                     'serial_number', d.serial_number, 'generation', d.generation, 'created_at', d.created_at,
                     'updated_at', d.updated_at, 'mode', a.mode, 'state', d.state) ORDER BY a.position)
                   FROM disk_attachments a JOIN disks d ON d.id = a.disk_id WHERE a.vm_id = v.id), '[]')`

// All columns except the record, which is as long as all others together.
const rowColumns = `v.id, v.project_id, v.name, v.type, v.family, v.gpu_count, v.location, v.state, v.generation, v.host_id,
  v.image, v.image_source, v.ssh_public_keys, v.ssh_host_key, v.ssh_host_key_sealed, v.startup_script,
  v.startup_script_sha256, v.shutdown_script, v.ssh_destination, v.os_disk_id, v.os_disk_size, v.os_disk_gib,
  v.interface_id, v.network_id, v.subnet_id, v.mac_address, v.private_address, v.public_address, v.public_address_id,
  v.is_address_static, v.ttl_seconds, v.on_expiry, v.idle_policy, v.idle_since, v.on_gpu_fault, v.health,
  v.last_replaced_at, v.billing_paused_at, v.expires_at, v.started_at, v.labels, v.description, v.is_protected, v.firewall_wanted,
  v.firewall_applied, v.created_at, v.updated_at, v.deleted_at, v.os_disk_lost_at, v.instance_template_id, v.group_id, v.group_number,
  v.metered_since, v.reservation_id, v.custom_image_id`

const vmColumns = `${rowColumns}, h.name AS host, h.state AS host_state, ${attachedDisksOfVm} AS disks`
const selectVm = `SELECT ${vmColumns} FROM vms v LEFT JOIN hosts h ON h.id = v.host_id`

const byId = statement<VmRow, { projectId: string; id: string }>(
  'vm_by_id',
  `${selectVm} WHERE v.id = :id AND v.project_id = :projectId AND v.deleted_at IS NULL`,
)

// Operations that begin at the same time share the read of their VMs, here and in `forEngine`.
const wantedVms = 'v.id = ANY (:id::uuid[])'

const anyById = keyedStatement<VmRow, { id: string }>('vm_any_by_id', `${selectVm} WHERE ${wantedVms}`)

// Locks VMs in id order, so that two transactions that lock several VMs never deadlock.
const lockAnySeveral = statement<VmRow, { ids: string[] }>(
  'vm_lock_any_several',
  `${selectVm} WHERE v.id = ANY (:ids::uuid[]) ORDER BY v.id FOR NO KEY UPDATE OF v`,
)

// Locks VMs in id order, so that two transactions that lock several VMs never deadlock. Without statistics,
// PostgreSQL assumes that almost all VMs are deleted, and would read the whole index of the other VMs. This form
// makes PostgreSQL look up the ids.
const lockSeveral = statement<never, { projectIds: string[]; ids: string[] }>(
  'vm_lock_several',
  `SELECT v.id FROM unnest(:projectIds::uuid[], :ids::uuid[]) AS w (project_id, id)
   JOIN vms v ON v.id = w.id AND v.project_id = w.project_id
   WHERE v.id = ANY (:ids::uuid[]) AND num_nulls(v.deleted_at) = 1 ORDER BY v.id FOR UPDATE OF v`,
)

const several = statement<VmRow, { projectIds: string[]; ids: string[] }>(
  'vm_several',
  `SELECT ${vmColumns} FROM unnest(:projectIds::uuid[], :ids::uuid[]) AS w (project_id, id)
   JOIN vms v ON v.id = w.id AND v.project_id = w.project_id LEFT JOIN hosts h ON h.id = v.host_id
   WHERE v.deleted_at IS NULL`,
)

// The range and the ORDER BY make PostgreSQL use the index on names. If PostgreSQL expects one VM per
// project, an index on the project alone looks equally good to it, and it reads all VMs of the project.
const named = statement<
  { project_id: string; name: string; is_taken: boolean; has_reservations: boolean; now: Date },
  { projectIds: string[]; names: string[] }
>(
  'vm_named',
  `SELECT w.project_id, w.name, (SELECT now FROM moment),
          (SELECT v.id FROM vms v
           WHERE v.project_id = w.project_id AND v.name >= w.name AND v.name <= w.name AND v.deleted_at IS NULL
           ORDER BY v.name LIMIT 1) IS NOT NULL AS is_taken,
          EXISTS (SELECT FROM projects p JOIN reservations r ON r.organization_id = p.organization_id AND r.ended_at IS NULL
                  WHERE p.id = w.project_id) AS has_reservations
   FROM unnest(:projectIds::uuid[], :names::text[]) AS w (project_id, name)`,
)

/** A VM with everything that its engine needs. */
export interface VmEngineRow extends VmRow {
  gpus: { pci_address: string; model: string }[]
  subnet_cidr: string
  /** The engine of its location. */
  engine: string
  /** The rules of its wanted generation, read by the same statement. */
  firewall: NetworkFirewall
}

// Data that the VMs of a network share is read once for all of them.
const forEngine = keyedStatement<VmEngineRow, { id: string }>(
  'vm_for_engine',
  `WITH wanted AS MATERIALIZED (SELECT ${rowColumns} FROM vms v WHERE ${wantedVms}),
        protected AS MATERIALIZED (
          SELECT n.network_id, ${networkFirewall('n.network_id')} AS firewall
          FROM (SELECT DISTINCT network_id FROM wanted) n)
   SELECT ${vmColumns}, s.cidr::text AS subnet_cidr, p.firewall,
          (SELECT engine FROM locations WHERE name = v.location) AS engine,
          coalesce((SELECT jsonb_agg(jsonb_build_object('pci_address', g.pci_address, 'model', g.model) ORDER BY g.pci_address)
                    FROM gpus g WHERE g.vm_id = v.id), '[]') AS gpus
   FROM wanted v JOIN subnets s ON s.id = v.subnet_id JOIN protected p ON p.network_id = v.network_id
   LEFT JOIN hosts h ON h.id = v.host_id`,
)

export const findVm = (db: Queryable, projectId: string, id: string) => byId.one(db, { projectId, id })
/** Finds a VM of any project, including hidden VMs: those that were deleted while their host was down. */
export const findAnyVm = (db: Queryable, id: string) => anyById.one(db, { id })
/** Locks a VM of any project, including hidden VMs. */
export const lockAnyVm = gathered(async (tx: Tx, ids: string[]): Promise<(VmRow | undefined)[]> => {
  const byId = new Map((await lockAnySeveral.all(tx, { ids })).map((vm) => [vm.id, vm]))
  return ids.map((id) => byId.get(id))
})
export const findVmForEngine = (db: Queryable, id: string) => forEngine.one(db, { id })

interface VmName {
  projectId: string
  name: string
}

/**
 * Returns whether a VM of the project has the name, whether its organization has reservations, and the
 * service's time. The name is checked here for an early refusal; the schema guarantees that no two VMs have the
 * same name.
 */
export const findVmName = gathered(
  async (tx: Tx, wanted: VmName[]): Promise<{ isTaken: boolean; hasReservations: boolean; now: Date }[]> => {
    const rows = await named.all(tx, {
      projectIds: wanted.map(({ projectId }) => projectId),
      names: wanted.map(({ name }) => name),
    })
    const taken = new Set(rows.flatMap((row) => (row.is_taken ? [`${row.project_id} ${row.name}`] : [])))
    const reserving = new Set(rows.flatMap((row) => (row.has_reservations ? [row.project_id] : [])))
    return wanted.map(({ projectId, name }) => ({
      isTaken: taken.has(`${projectId} ${name}`),
      hasReservations: reserving.has(projectId),
      now: rows[0]!.now,
    }))
  },
  { claimOf: ({ projectId, name }) => `${projectId} ${name}` },
)

/** Locks the VM for the transaction and returns its current row; undefined if the project has no such VM. */
export const lockVm = gathered(
  async (tx: Tx, wanted: { projectId: string; id: string }[]): Promise<(VmRow | undefined)[]> => {
    const which = { projectIds: wanted.map(({ projectId }) => projectId), ids: wanted.map(({ id }) => id) }
    const [, rows] = await Promise.all([lockSeveral.run(tx, which), several.all(tx, which)])
    const byId = new Map(rows.map((vm) => [vm.id, vm]))
    return wanted.map(({ id }) => byId.get(id))
  },
  { claimOf: ({ id }) => id },
)

/** Returns the serial number of the disk in the guest: at most 20 characters for virtio. */
export const serialNumberOf = (diskId: string): string =>
  diskId.slice(14, 18) + diskId.slice(19, 23) + diskId.slice(24)

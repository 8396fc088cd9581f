import type { VmState } from '@slipway/contract'
import type { Queryable, Tx } from '../database.ts'
import { statement } from '../statement.ts'

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
  ssh_public_key: string
  startup_script: string
  shutdown_script: string
  ssh_destination: string
  os_disk_id: string
  interface_id: string
  network_id: string
  subnet_id: string
  mac_address: string
  private_address: string
  public_address: string | null
  public_address_id: string | null
  ttl_seconds: number | null
  on_expiry: 'stop' | 'delete'
  expires_at: Date | null
  firewall_wanted: number
  firewall_applied: number
  created_at: Date
  updated_at: Date
  deleted_at: Date | null
  /** Its host has no OS disk of it: it is neither billed nor started. */
  os_disk_lost_at: Date | null
  disks: VmDiskRow[]
}

/** The disks come in the order in which they were attached. */
export const attachedDisksOfVm = `
         coalesce((SELECT jsonb_agg(jsonb_build_object('id', d.id, 'name', d.name, 'type', d.type, 'size', d.size,
                     'size_gib', d.size_gib, 'location', d.location, 'block_size', d.block_size,
                     'serial_number', d.serial_number, 'generation', d.generation, 'created_at', d.created_at,
                     'updated_at', d.updated_at, 'mode', a.mode) ORDER BY a.position)
                   FROM disk_attachments a JOIN disks d ON d.id = a.disk_id WHERE a.vm_id = v.id), '[]')`

const vmColumns = `v.*, h.name AS host, h.state AS host_state, ${attachedDisksOfVm} AS disks`
const selectVm = `SELECT ${vmColumns} FROM vms v LEFT JOIN hosts h ON h.id = v.host_id`

const byId = statement<VmRow, { projectId: string; id: string }>(
  'vm_by_id',
  `${selectVm} WHERE v.id = :id AND v.project_id = :projectId AND v.deleted_at IS NULL`,
)

const anyById = statement<VmRow, { id: string }>('vm_any_by_id', `${selectVm} WHERE v.id = :id`)

const lock = statement<{ id: string }, { projectId: string; id: string }>(
  'vm_lock',
  'SELECT id FROM vms WHERE id = :id AND project_id = :projectId AND deleted_at IS NULL FOR UPDATE',
)

export interface NewVm {
  id: string
  projectId: string
  name: string
  type: string
  family: string
  gpuCount: number
  location: string
  hostId: string
  image: string
  imageSource: Record<string, unknown>
  sshPublicKey: string
  startupScript: string
  shutdownScript: string
  osDiskId: string
  interfaceId: string
  networkId: string
  subnetId: string
  macAddress: string
  privateAddress: string
  publicAddress: string | null
  publicAddressId: string | null
  ttlSeconds: number | null
  onExpiry: string
}

const insert = statement<never, NewVm>(
  'vm_insert',
  `INSERT INTO vms (id, project_id, name, type, family, gpu_count, location, host_id, image, image_source,
     ssh_public_key, startup_script, shutdown_script, os_disk_id, interface_id, network_id, subnet_id, mac_address,
     private_address, public_address, public_address_id, ttl_seconds, on_expiry, state)
   VALUES (:id, :projectId, :name, :type, :family, :gpuCount, :location, :hostId, :image, :imageSource,
     :sshPublicKey, :startupScript, :shutdownScript, :osDiskId, :interfaceId, :networkId, :subnetId, :macAddress,
     :privateAddress, :publicAddress, :publicAddressId, :ttlSeconds, :onExpiry, 'STATE_CREATING')`,
)

const named = statement<{ id: string }, { projectId: string; name: string }>(
  'vm_named',
  'SELECT id FROM vms WHERE project_id = :projectId AND name = :name AND deleted_at IS NULL',
)

// The guard is the state table's: a transition that it does not list does not happen.
const move = statement<{ id: string }, { id: string; to: string; from: string[] }>(
  'vm_move',
  `UPDATE vms SET state = :to, updated_at = slipway_now() WHERE id = :id AND state = ANY (:from) RETURNING id`,
)

const raise = statement<{ generation: number }, { id: string }>(
  'vm_raise_generation',
  'UPDATE vms SET generation = generation + 1 WHERE id = :id RETURNING generation',
)

const started = statement<
  Pick<VmRow, 'state' | 'ssh_destination' | 'firewall_applied' | 'expires_at' | 'updated_at'>,
  { id: string; sshDestination: string; firewallGeneration: number }
>(
  'vm_started',
  `UPDATE vms SET ssh_destination = :sshDestination, firewall_applied = greatest(firewall_applied, :firewallGeneration),
          firewall_behind_since = CASE WHEN greatest(firewall_applied, :firewallGeneration) < firewall_wanted
                                       THEN firewall_behind_since END,
          expires_at = CASE WHEN expires_at IS NULL AND ttl_seconds IS NOT NULL
                            THEN slipway_now() + ttl_seconds * interval '1 second' ELSE expires_at END
   WHERE id = :id RETURNING state, ssh_destination, firewall_applied, expires_at, updated_at`,
)

const stopped = statement<never, { id: string }>(
  'vm_stopped',
  `UPDATE vms SET ssh_destination = '' WHERE id = :id`,
)

// The VM is off and its time was up: what was asked for has happened, and a start begins without a time to live.
const spendTtl = statement<never, { id: string }>(
  'vm_spend_ttl',
  `UPDATE vms SET expires_at = NULL, ttl_seconds = NULL, expiry_warned_at = NULL
   WHERE id = :id AND on_expiry = 'stop' AND expires_at <= slipway_now()`,
)

const osDisk = statement<{ id: string }, { id: string; isLost: boolean }>(
  'vm_os_disk',
  `UPDATE vms SET os_disk_lost_at = CASE WHEN :isLost THEN slipway_now() END, updated_at = slipway_now()
   WHERE id = :id AND (os_disk_lost_at IS NOT NULL) <> :isLost RETURNING id`,
)

const setHost = statement<never, { id: string; hostId: string | null }>(
  'vm_set_host',
  'UPDATE vms SET host_id = :hostId WHERE id = :id',
)

const setType = statement<never, { id: string; type: string; gpuCount: number }>(
  'vm_set_type',
  'UPDATE vms SET type = :type, gpu_count = :gpuCount, updated_at = slipway_now() WHERE id = :id',
)

const setTtl = statement<never, { id: string; ttlSeconds: number; onExpiry: string | null }>(
  'vm_set_ttl',
  `UPDATE vms SET ttl_seconds = :ttlSeconds::int, on_expiry = coalesce(:onExpiry, on_expiry),
          updated_at = slipway_now(), expiry_warned_at = NULL,
          expires_at = slipway_now() + :ttlSeconds::int * interval '1 second'
   WHERE id = :id`,
)

const remove = statement<never, { id: string }>('vm_delete', 'DELETE FROM vms WHERE id = :id')

const hide = statement<never, { id: string }>(
  'vm_hide',
  'UPDATE vms SET deleted_at = slipway_now() WHERE id = :id',
)

/** A VM with all that its engine has to know. */
export interface VmEngineRow extends VmRow {
  gpus: { pci_address: string; model: string }[]
  subnet_cidr: string
}

const forEngine = statement<VmEngineRow, { id: string }>(
  'vm_for_engine',
  `SELECT ${vmColumns}, s.cidr::text AS subnet_cidr,
          coalesce((SELECT jsonb_agg(jsonb_build_object('pci_address', g.pci_address, 'model', g.model) ORDER BY g.pci_address)
                    FROM gpus g WHERE g.vm_id = v.id), '[]') AS gpus
   FROM vms v JOIN subnets s ON s.id = v.subnet_id LEFT JOIN hosts h ON h.id = v.host_id WHERE v.id = :id`,
)

export const findVm = (db: Queryable, projectId: string, id: string) => byId.one(db, { projectId, id })
/** Finds a VM of any project, also a hidden one. */
export const findAnyVm = (db: Queryable, id: string) => anyById.one(db, { id })
export const findVmForEngine = (db: Queryable, id: string) => forEngine.one(db, { id })

/** This is for telling it in time; that no two VMs get one name is for the schema to see to. */
export async function isVmNameTaken(db: Queryable, projectId: string, name: string): Promise<boolean> {
  return (await named.one(db, { projectId, name })) !== undefined
}

/** Locks the VM for the transaction, then reads it as it now is. */
export async function lockVm(tx: Tx, projectId: string, id: string): Promise<VmRow | undefined> {
  return (await lock.one(tx, { projectId, id })) && byId.one(tx, { projectId, id })
}

export async function insertVm(tx: Tx, vm: NewVm): Promise<void> {
  await insert.run(tx, vm)
}

/** Returns false when the VM is in none of the states `from`. */
export async function moveVm(tx: Tx, id: string, to: VmState, from: VmState[]): Promise<boolean> {
  return (await move.one(tx, { id, to, from })) !== undefined
}

export async function raiseVmGeneration(tx: Tx, id: string): Promise<number> {
  return (await raise.one(tx, { id }))!.generation
}

/** Returns the VM as it now is. */
export async function markVmStarted(
  tx: Tx,
  vm: VmRow,
  sshDestination: string,
  firewallGeneration: number,
): Promise<VmRow> {
  return { ...vm, ...(await started.one(tx, { id: vm.id, sshDestination, firewallGeneration })) }
}
export const markVmStopped = (tx: Tx, id: string) => stopped.run(tx, { id })
/** A VM without a host is at no engine: its host was forgotten. */
export const setVmHost = (tx: Tx, id: string, hostId: string | null) => setHost.run(tx, { id, hostId })
/** Returns false when that was known. */
export const noteOsDisk = async (tx: Tx, id: string, isLost: boolean): Promise<boolean> =>
  (await osDisk.one(tx, { id, isLost })) !== undefined
export const setVmType = (tx: Tx, id: string, type: string, gpuCount: number) =>
  setType.run(tx, { id, type, gpuCount })
/** Forgets a time to live that is over. */
export const spendVmTtl = (tx: Tx, id: string) => spendTtl.run(tx, { id })
export const setVmTtl = (tx: Tx, id: string, ttlSeconds: number, onExpiry: string | null) =>
  setTtl.run(tx, { id, ttlSeconds, onExpiry })
export const deleteVmRow = (tx: Tx, id: string) => remove.run(tx, { id })
export const hideVm = (tx: Tx, id: string) => hide.run(tx, { id })

/** What the guest sees as the disk's serial: at most 20 characters for virtio. */
export const serialNumberOf = (diskId: string): string =>
  diskId.slice(14, 18) + diskId.slice(19, 23) + diskId.slice(24)

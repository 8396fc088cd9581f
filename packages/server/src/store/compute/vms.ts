import type { VmState } from '@slipway/contract'
import { type Queryable, statement, type Tx } from '../database.ts'

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
  disks: VmDiskRow[]
}

/** In the order in which they were attached. */
export const attachedDisksOfVm = `
         coalesce((SELECT jsonb_agg(jsonb_build_object('id', d.id, 'name', d.name, 'type', d.type, 'size', d.size,
                     'size_gib', d.size_gib, 'location', d.location, 'block_size', d.block_size,
                     'serial_number', d.serial_number, 'generation', d.generation, 'created_at', d.created_at,
                     'updated_at', d.updated_at, 'mode', a.mode) ORDER BY a.position)
                   FROM disk_attachments a JOIN disks d ON d.id = a.disk_id WHERE a.vm_id = v.id), '[]')`

const vmColumns = `v.*, h.name AS host, h.state AS host_state, ${attachedDisksOfVm} AS disks`
const selectVm = `SELECT ${vmColumns} FROM vms v LEFT JOIN hosts h ON h.id = v.host_id`

const byId = statement<VmRow, [string, string]>(
  'vm_by_id',
  `${selectVm} WHERE v.id = $2 AND v.project_id = $1 AND v.deleted_at IS NULL`,
)

const anyById = statement<VmRow, [string]>('vm_any_by_id', `${selectVm} WHERE v.id = $1`)

const lock = statement<{ id: string }, [string, string]>(
  'vm_lock',
  'SELECT id FROM vms WHERE id = $2 AND project_id = $1 AND deleted_at IS NULL FOR UPDATE',
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

const insert = statement<
  never,
  [
    ...[string, string, string, string, string, number, string, string, string, string],
    ...[string, string, string, string, string, string, string, string, string],
    ...[string | null, string | null, number | null, string],
  ]
>(
  'vm_insert',
  `INSERT INTO vms (id, project_id, name, type, family, gpu_count, location, host_id, image, image_source,
     ssh_public_key, startup_script, shutdown_script, os_disk_id, interface_id, network_id, subnet_id, mac_address,
     private_address, public_address, public_address_id, ttl_seconds, on_expiry, state)
   VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23,
     'STATE_CREATING')`,
)

// The guard is the state table's: a transition that it does not list does not happen.
const move = statement<{ id: string }, [string, string, string[]]>(
  'vm_move',
  `UPDATE vms SET state = $2, updated_at = slipway_now() WHERE id = $1 AND state = ANY ($3) RETURNING id`,
)

const raise = statement<{ generation: number }, [string]>(
  'vm_raise_generation',
  'UPDATE vms SET generation = generation + 1 WHERE id = $1 RETURNING generation',
)

const started = statement<
  Pick<VmRow, 'state' | 'ssh_destination' | 'firewall_applied' | 'expires_at' | 'updated_at'>,
  [string, string, number]
>(
  'vm_started',
  `UPDATE vms SET ssh_destination = $2, firewall_applied = greatest(firewall_applied, $3),
          expires_at = CASE WHEN expires_at IS NULL AND ttl_seconds IS NOT NULL
                            THEN slipway_now() + ttl_seconds * interval '1 second' ELSE expires_at END
   WHERE id = $1 RETURNING state, ssh_destination, firewall_applied, expires_at, updated_at`,
)

const stopped = statement<never, [string]>('vm_stopped', `UPDATE vms SET ssh_destination = '' WHERE id = $1`)

// Off when its time was up: what was asked for has happened, and a start begins without a time to live.
const spendTtl = statement<never, [string]>(
  'vm_spend_ttl',
  `UPDATE vms SET expires_at = NULL, ttl_seconds = NULL, expiry_warned_at = NULL
   WHERE id = $1 AND on_expiry = 'stop' AND expires_at <= slipway_now()`,
)

const setHost = statement<never, [string, string]>('vm_set_host', 'UPDATE vms SET host_id = $2 WHERE id = $1')

const setType = statement<never, [string, string, number]>(
  'vm_set_type',
  'UPDATE vms SET type = $2, gpu_count = $3, updated_at = slipway_now() WHERE id = $1',
)

const setTtl = statement<never, [string, number, string | null]>(
  'vm_set_ttl',
  `UPDATE vms SET ttl_seconds = $2::int, on_expiry = coalesce($3, on_expiry), updated_at = slipway_now(), expiry_warned_at = NULL,
          expires_at = slipway_now() + $2::int * interval '1 second'
   WHERE id = $1`,
)

const remove = statement<never, [string]>('vm_delete', 'DELETE FROM vms WHERE id = $1')

const hide = statement<never, [string]>('vm_hide', 'UPDATE vms SET deleted_at = slipway_now() WHERE id = $1')

const claimedGpus = statement<{ pci_address: string; model: string }, [string]>(
  'vm_gpus',
  'SELECT pci_address, model FROM gpus WHERE vm_id = $1 ORDER BY pci_address',
)

/** A VM with all that its engine has to know. */
export interface VmEngineRow extends VmRow {
  gpus: { pci_address: string; model: string }[]
  subnet_cidr: string
}

const forEngine = statement<VmEngineRow, [string]>(
  'vm_for_engine',
  `SELECT ${vmColumns}, s.cidr::text AS subnet_cidr,
          coalesce((SELECT jsonb_agg(jsonb_build_object('pci_address', g.pci_address, 'model', g.model) ORDER BY g.pci_address)
                    FROM gpus g WHERE g.vm_id = v.id), '[]') AS gpus
   FROM vms v JOIN subnets s ON s.id = v.subnet_id LEFT JOIN hosts h ON h.id = v.host_id WHERE v.id = $1`,
)

export const findVm = (db: Queryable, projectId: string, id: string) => byId.one(db, projectId, id)
/** Of any project, also a hidden one. */
export const findAnyVm = (db: Queryable, id: string) => anyById.one(db, id)
export const findVmForEngine = (db: Queryable, id: string) => forEngine.one(db, id)

/** Locked for the transaction, then read as it now is. */
export async function lockVm(tx: Tx, projectId: string, id: string): Promise<VmRow | undefined> {
  return (await lock.one(tx, projectId, id)) && byId.one(tx, projectId, id)
}

export async function insertVm(tx: Tx, vm: NewVm): Promise<void> {
  await insert.run(
    tx,
    vm.id,
    vm.projectId,
    vm.name,
    vm.type,
    vm.family,
    vm.gpuCount,
    vm.location,
    vm.hostId,
    vm.image,
    JSON.stringify(vm.imageSource),
    vm.sshPublicKey,
    vm.startupScript,
    vm.shutdownScript,
    vm.osDiskId,
    vm.interfaceId,
    vm.networkId,
    vm.subnetId,
    vm.macAddress,
    vm.privateAddress,
    vm.publicAddress,
    vm.publicAddressId,
    vm.ttlSeconds,
    vm.onExpiry,
  )
}

/** False when the VM is in none of the states `from`. */
export async function moveVm(tx: Tx, id: string, to: VmState, from: VmState[]): Promise<boolean> {
  return (await move.one(tx, id, to, from)) !== undefined
}

export async function raiseVmGeneration(tx: Tx, id: string): Promise<number> {
  return (await raise.one(tx, id))!.generation
}

/** Answers the VM as it now is. */
export async function markVmStarted(
  tx: Tx,
  vm: VmRow,
  sshDestination: string,
  firewallGeneration: number,
): Promise<VmRow> {
  return { ...vm, ...(await started.one(tx, vm.id, sshDestination, firewallGeneration)) }
}
export const markVmStopped = (tx: Tx, id: string) => stopped.run(tx, id)
export const setVmHost = (tx: Tx, id: string, hostId: string) => setHost.run(tx, id, hostId)
export const setVmType = (tx: Tx, id: string, type: string, gpuCount: number) =>
  setType.run(tx, id, type, gpuCount)
/** Forgets a time to live that is over. */
export const spendVmTtl = (tx: Tx, id: string) => spendTtl.run(tx, id)
export const setVmTtl = (tx: Tx, id: string, ttlSeconds: number, onExpiry: string | null) =>
  setTtl.run(tx, id, ttlSeconds, onExpiry)
export const deleteVmRow = (tx: Tx, id: string) => remove.run(tx, id)
export const hideVm = (tx: Tx, id: string) => hide.run(tx, id)
export const findVmGpus = (db: Queryable, id: string) => claimedGpus.all(db, id)

/** What the guest sees as the disk's serial: at most 20 characters for virtio. */
export const serialNumberOf = (diskId: string): string =>
  diskId.slice(14, 18) + diskId.slice(19, 23) + diskId.slice(24)

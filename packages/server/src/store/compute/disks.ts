import type { AnnotationUpdate, Disk, DiskState, DiskType, Labels } from '@slipway/contract'
import type { LabelSelector } from '../../domain/labels.ts'
import type { Queryable, Tx } from '../database.ts'
import { fitsLabels, type LabelParams, labelParams } from '../labels.ts'
import { filteredStatement, isBefore, statement } from '../statement.ts'
import { time } from '../time.ts'

export interface DiskRow {
  id: string
  project_id: string
  name: string
  type: DiskType
  size: string
  size_gib: number
  location: string
  block_size: number
  serial_number: string
  state: DiskState
  generation: number
  host_id: string | null
  host: string | null
  created_at: Date
  updated_at: Date
  labels: Labels
  description: string
  is_protected: boolean
  /** `is_vm_deleted`: it went while its host was away, and holds the disk until the host is back or forgotten. */
  attached_to: { vm_id: string; mode: 'read-write' | 'read-only'; is_vm_deleted: boolean }[]
}

const selectDisk = `
  SELECT d.*, h.name AS host,
         coalesce((SELECT jsonb_agg(jsonb_build_object('vm_id', a.vm_id, 'mode', a.mode,
                     'is_vm_deleted', v.deleted_at IS NOT NULL) ORDER BY a.position)
                   FROM disk_attachments a JOIN vms v ON v.id = a.vm_id WHERE a.disk_id = d.id), '[]') AS attached_to
  FROM disks d LEFT JOIN hosts h ON h.id = d.host_id`

const byId = statement<DiskRow, { projectId: string; id: string }>(
  'disk_by_id',
  `${selectDisk} WHERE d.id = :id AND d.project_id = :projectId`,
)

const lock = statement<never, { projectId: string; ids: string[] }>(
  'disk_lock',
  'SELECT id FROM disks WHERE project_id = :projectId AND id = ANY (:ids) ORDER BY id FOR UPDATE',
)

const several = statement<DiskRow, { projectId: string; ids: string[] }>(
  'disk_several',
  `${selectDisk} WHERE d.project_id = :projectId AND d.id = ANY (:ids)`,
)

const list = filteredStatement<DiskRow, Omit<DiskFilter, 'labels'> & LabelParams>(
  'disk_list',
  (given) => `${selectDisk}
   WHERE d.project_id = :projectId AND ${isBefore('d.id')}
     AND (:types::text[] IS NULL OR d.type = ANY (:types))
     AND (:locations::text[] IS NULL OR d.location = ANY (:locations))
     AND ${fitsLabels('d.labels')} ${given}
   ORDER BY d.id DESC LIMIT :limit`,
  {
    ids: 'd.id = ANY (:ids)',
    names: 'd.name = ANY (:names)',
    attachedTo: 'd.id IN (SELECT disk_id FROM disk_attachments WHERE vm_id = ANY (:attachedTo))',
  },
)

const insert = statement<never, NewDisk>(
  'disk_insert',
  `INSERT INTO disks (id, project_id, name, type, size, size_gib, location, block_size, serial_number, state,
                      labels, description, is_protected)
   VALUES (:id, :projectId, :name, :type, :size, :sizeGib, :location, :blockSize, :serialNumber, 'creating',
           :labels, :description, :isProtected)`,
)

// What is not given stays.
const annotate = statement<
  never,
  {
    id: string
    name: string | null
    labels: Labels | null
    description: string | null
    isProtected: boolean | null
  }
>(
  'disk_annotate',
  `UPDATE disks SET name = coalesce(:name, name), labels = coalesce(:labels, labels),
          description = coalesce(:description, description), is_protected = coalesce(:isProtected, is_protected),
          updated_at = slipway_now()
   WHERE id = :id`,
)

const move = statement<{ id: string }, { id: string; to: string; from: string[] }>(
  'disk_move',
  `UPDATE disks SET state = :to, updated_at = slipway_now() WHERE id = :id AND state = ANY (:from) RETURNING id`,
)

const raise = statement<{ generation: number }, { id: string }>(
  'disk_raise_generation',
  'UPDATE disks SET generation = generation + 1 WHERE id = :id RETURNING generation',
)

const resize = statement<never, { id: string; size: string; sizeGib: number }>(
  'disk_resize',
  'UPDATE disks SET size = :size, size_gib = :sizeGib, updated_at = slipway_now() WHERE id = :id',
)

// Where storage is local, the first attachment settles where a disk lives.
const pin = statement<never, { id: string; hostId: string }>(
  'disk_settle',
  'UPDATE disks SET host_id = :hostId WHERE id = :id AND host_id IS NULL',
)

const attach = statement<never, { vmId: string; diskId: string; mode: string; isExclusive: boolean }>(
  'disk_attach',
  'INSERT INTO disk_attachments (vm_id, disk_id, mode, is_exclusive) VALUES (:vmId, :diskId, :mode, :isExclusive)',
)

const detach = statement<never, { vmId: string; diskIds: string[] }>(
  'disk_detach',
  'DELETE FROM disk_attachments WHERE vm_id = :vmId AND disk_id = ANY (:diskIds)',
)

const remove = statement<never, { id: string }>('disk_delete', 'DELETE FROM disks WHERE id = :id')

export const findDisk = (db: Queryable, projectId: string, id: string) => byId.one(db, { projectId, id })

/** Locks the disks in the order of their ids, then reads them as they now are. */
export async function lockDisks(tx: Tx, projectId: string, ids: string[]): Promise<DiskRow[]> {
  await lock.run(tx, { projectId, ids })
  return several.all(tx, { projectId, ids })
}

export interface DiskFilter {
  projectId: string
  beforeId: string | null
  ids: string[] | null
  names: string[] | null
  types: string[] | null
  locations: string[] | null
  attachedTo: string[] | null
  labels: LabelSelector | null
  limit: number
}

export const listDisks = (db: Queryable, f: DiskFilter) => list.all(db, { ...f, ...labelParams(f.labels) })

export interface NewDisk {
  id: string
  projectId: string
  name: string
  type: DiskType
  size: string
  sizeGib: number
  location: string
  blockSize: number
  serialNumber: string
  labels: Labels
  description: string
  isProtected: boolean
}

export const insertDisk = (tx: Tx, d: NewDisk) => insert.run(tx, d)

/** Violates `disks_project_id_name_key` when the name is taken. */
export const annotateDisk = (tx: Tx, id: string, change: AnnotationUpdate) =>
  annotate.run(tx, {
    id,
    name: change.name ?? null,
    labels: change.labels ?? null,
    description: change.description ?? null,
    isProtected: change.deletion_protection ?? null,
  })

export async function moveDisk(tx: Tx, id: string, to: DiskState, from: DiskState[]): Promise<boolean> {
  return (await move.one(tx, { id, to, from })) !== undefined
}

export async function raiseDiskGeneration(tx: Tx, id: string): Promise<number> {
  return (await raise.one(tx, { id }))!.generation
}

export const resizeDisk = (tx: Tx, id: string, size: string, sizeGib: number) =>
  resize.run(tx, { id, size, sizeGib })
export const pinDisk = (tx: Tx, id: string, hostId: string) => pin.run(tx, { id, hostId })
export const attachDiskRow = (tx: Tx, vmId: string, diskId: string, mode: string, isExclusive: boolean) =>
  attach.run(tx, { vmId, diskId, mode, isExclusive })
export const detachDiskRows = (tx: Tx, vmId: string, diskIds: string[]) => detach.run(tx, { vmId, diskIds })
export const deleteDiskRow = (tx: Tx, id: string) => remove.run(tx, { id })

export function diskView(disk: DiskRow): Disk {
  return {
    id: disk.id,
    name: disk.name,
    type: disk.type,
    size: disk.size,
    location: disk.location,
    block_size: disk.block_size,
    created_at: time(disk.created_at),
    updated_at: time(disk.updated_at),
    serial_number: disk.serial_number,
    state: disk.state,
    attached_to: disk.attached_to.map(({ vm_id, mode, is_vm_deleted }) => ({
      vm_id,
      attachment_type: 'data' as const,
      mode,
      vm_deleted: is_vm_deleted,
    })),
    labels: disk.labels,
    description: disk.description,
    deletion_protection: disk.is_protected,
  }
}

import type { Disk, DiskState, DiskType, LabelSelector, Labels } from '@slipway/contract'
import type { Queryable, Tx } from '../../postgres/database.ts'
import {
  boolean,
  constant,
  each,
  JsonText,
  json,
  jsonSql,
  list as listOf,
  number,
  object,
  plain,
  text,
  time,
} from '../../postgres/json.ts'
import { keyedStatement } from '../../postgres/keyed.ts'
import { fitsLabels, type LabelParams, labelParams } from '../../postgres/labels.ts'
import { priceNow, type SortedPage, type SortedRow, sortedStatement } from '../../postgres/sorted.ts'
import { ifGiven, statement } from '../../postgres/statement.ts'
import { annotationOf } from './annotations.ts'

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
  /** The group, if the disk was created with one of its members. */
  group_id: string | null
  /** The snapshot that the disk was created from. This id is kept when the snapshot is deleted. */
  snapshot_id: string | null
  created_at: Date
  updated_at: Date
  labels: Labels
  description: string
  is_protected: boolean
  /**
   * `is_vm_deleted`: the VM was deleted while its host was down, and keeps the disk until the host is back or
   * forgotten.
   */
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

/** The record that clients see, as SQL on a row `d` of disks. Add a new field here and to the contract's `Disk`. */
const diskRecord = jsonSql(
  object<Disk>({
    id: plain('d.id'),
    name: text('d.name'),
    type: text('d.type'),
    size: text('d.size'),
    location: text('d.location'),
    block_size: number('d.block_size'),
    created_at: time('d.created_at'),
    updated_at: time('d.updated_at'),
    serial_number: text('d.serial_number'),
    state: text('d.state'),
    labels: json('d.labels'),
    description: text('d.description'),
    deletion_protection: boolean('d.is_protected'),
    attached_to: listOf(
      each(
        object<Disk['attached_to'][number]>({
          vm_id: plain('a.vm_id'),
          attachment_type: constant('data'),
          mode: text('a.mode'),
          vm_deleted: boolean('v.deleted_at IS NOT NULL'),
        }),
        'disk_attachments a JOIN vms v ON v.id = a.vm_id WHERE a.disk_id = d.id',
        'a.position',
      ),
    ),
  }),
)

const recordById = keyedStatement<{ record: string }, { projectId: string; id: string }>(
  'disk_record',
  `SELECT d.project_id AS "projectId", d.id, ${diskRecord} AS record FROM disks d
   WHERE d.id = ANY (:id::uuid[])`,
)

const lock = statement<never, { projectId: string; ids: string[] }>(
  'disk_lock',
  'SELECT id FROM disks WHERE project_id = :projectId AND id = ANY (:ids) ORDER BY id FOR UPDATE',
)

const several = statement<DiskRow, { projectId: string; ids: string[] }>(
  'disk_several',
  `${selectDisk} WHERE d.project_id = :projectId AND d.id = ANY (:ids)`,
)

const list = sortedStatement<SortedRow & { record: string }, Omit<DiskFilter, 'labels'> & LabelParams>(
  'disk_list',
  { id: 'd.id', name: 'd.name', usdPerHour: `(d.size_gib * ${priceNow('d.type')})` },
  ({ given, key, isAfter, orderBy }) => `SELECT d.id, ${key} AS sort_key, ${diskRecord} AS record FROM disks d
   WHERE d.project_id = :projectId AND ${isAfter}
     AND ${ifGiven(':types::text[]', 'd.type = ANY (:types)')}
     AND ${ifGiven(':locations::text[]', 'd.location = ANY (:locations)')}
     AND ${fitsLabels('d.labels')} ${given}
   ORDER BY ${orderBy} LIMIT :limit`,
  {
    ids: 'd.id = ANY (:ids)',
    names: 'd.name = ANY (:names)',
    attachedTo: 'd.id IN (SELECT disk_id FROM disk_attachments WHERE vm_id = ANY (:attachedTo))',
  },
)

const insert = statement<never, NewDisk>(
  'disk_insert',
  `INSERT INTO disks (id, project_id, name, type, size, size_gib, location, block_size, serial_number, state,
                      labels, description, is_protected, group_id, snapshot_id)
   VALUES (:id, :projectId, :name, :type, :size, :sizeGib, :location, :blockSize, :serialNumber, 'creating',
           :labels, :description, :isProtected, :groupId, :snapshotId)`,
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

// With local storage, the first attachment determines the host of a disk.
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

export async function findDiskView(
  db: Queryable,
  projectId: string,
  id: string,
): Promise<JsonText<Disk> | undefined> {
  const row = await recordById.one(db, { projectId, id })
  return row && new JsonText(row.record)
}

/** Locks the disks in the order of their ids, then reads their current rows. */
export async function lockDisks(tx: Tx, projectId: string, ids: string[]): Promise<DiskRow[]> {
  await lock.run(tx, { projectId, ids })
  return several.all(tx, { projectId, ids })
}

export interface DiskFilter extends SortedPage {
  projectId: string
  ids: string[] | null
  names: string[] | null
  types: string[] | null
  locations: string[] | null
  attachedTo: string[] | null
  labels: LabelSelector | null
}

export const listDiskViews = (db: Queryable, f: DiskFilter) =>
  list.all(db, { ...f, ...labelParams(f.labels) })

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
  /** The group, if the disk is created with one of its members. */
  groupId: string | null
  /** The snapshot that the disk is created from. */
  snapshotId: string | null
}

export const insertDisk = (tx: Tx, d: NewDisk) => insert.run(tx, d)

/** Violates `disks_project_id_name_key` if the name is taken. */
export const annotateDisk = annotationOf('disk')

export async function setDiskState(tx: Tx, id: string, to: DiskState, from: DiskState[]): Promise<boolean> {
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

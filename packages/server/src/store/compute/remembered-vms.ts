import { runningCost } from '../../domain/money.ts'
import type { Queryable } from '../../postgres/database.ts'
import { type Json, jsonSql } from '../../postgres/json.ts'
import { keyedStatement } from '../../postgres/keyed.ts'

export type VmKey = { projectId: string; id: string }

/** What a record of a VM is made of, as SQL of a row `v` of vms and its `billing`. */
interface Parts {
  record: Json
  /** That part of the record which grows. */
  cost: Json
  /** The same in USD-milliseconds per hour, unrounded, and what an hour adds to it. */
  spent: string
  rate: string
  billing: string
}

interface Read {
  version: string
  priceChanges: number
  now: number
  head: string
  tail: string
  spent: string
  /** Null: nobody can tell by now what it will cost. */
  rate: string | null
}

/** What says whether a record still holds. */
type Standing = Pick<Read, 'version' | 'priceChanges' | 'now'>

interface Remembered extends Read {
  readAt: number
  costAfter: (ms: number) => string
  /** For those who asked together: they wait for the same row. */
  told?: { by: Standing; record: string }
}

const mostRemembered = 2_000
/** A longer one has more keys than most; it is read anew. */
const longestRemembered = 8_000
/** Transactions are numbered in a circle, which takes days at best. */
const rememberedMs = 60_000

const now = `(date_part('epoch', t.now) * 1000)::bigint AS now`
const version = `v.project_id AS "projectId", v.id, v.xmin::text AS version,
   (SELECT count FROM price_changes) AS "priceChanges", ${now}`

const standing = keyedStatement<Standing, VmKey>(
  'vm_standing',
  `SELECT ${version} FROM vms v CROSS JOIN moment t WHERE v.id = ANY (:id::uuid[]) AND v.deleted_at IS NULL`,
)

/**
 * Reads records of VMs without data disks. Who asks for one that was asked for lately is told it as it was, after a look
 * whether row and prices are still the same, which takes PostgreSQL a third of what the record does. All else that is in
 * a record changes together with the row: meters open and close as the state changes, and a disk that is attached raises
 * its generation.
 */
export function rememberedVms({ record, cost, spent, rate, billing }: Parts) {
  const costAt = record.indexOf(cost[0]!)
  const byId = keyedStatement<Read, VmKey>(
    'vm_record_without_disks',
    `SELECT ${version}, ${spent} AS spent, ${rate} AS rate,
            ${jsonSql(record.slice(0, costAt))} AS head, ${jsonSql(record.slice(costAt + 1))} AS tail
     FROM vms v ${billing}
     WHERE v.id = ANY (:id::uuid[]) AND v.deleted_at IS NULL
       AND NOT EXISTS (SELECT FROM disk_attachments a WHERE a.vm_id = v.id)`,
  )
  const memories = new WeakMap<Queryable, Map<string, Remembered>>()

  async function read(db: Queryable, key: VmKey): Promise<string | undefined> {
    const memory = memories.get(db) ?? new Map<string, Remembered>()
    memories.set(db, memory)
    memory.delete(key.id)
    const row = await byId.one(db, key)
    if (!row) return undefined
    const costAfter = runningCost(row.spent, row.rate ?? '0')
    const isShort = row.head.length + row.tail.length <= longestRemembered
    // A transaction may still change what it has changed before: its rows keep their version then.
    if (db.isShared && isShort && row.rate !== null) {
      // Those go first that were read first.
      if (memory.size >= mostRemembered) memory.delete(memory.keys().next().value!)
      memory.set(key.id, { ...row, readAt: performance.now(), costAfter })
    }
    return row.head + costAfter(0) + row.tail
  }

  return {
    async find(db: Queryable, key: VmKey): Promise<string | undefined> {
      const known = memories.get(db)?.get(key.id)
      if (!known || performance.now() - known.readAt > rememberedMs) return read(db, key)
      const found = await standing.one(db, key)
      if (!found || !holds(known, found)) return read(db, key)
      if (known.told?.by !== found)
        known.told = {
          by: found,
          record: known.head + known.costAfter(found.now - known.now) + known.tail,
        }
      return known.told.record
    },
  }
}

const holds = (known: Remembered, { version, priceChanges, now }: Standing): boolean =>
  version === known.version &&
  priceChanges === known.priceChanges &&
  // Clocks can be turned back.
  now >= known.now

import type { DevFault } from '@slipway/contract'
import type { Queryable } from '../../postgres/database.ts'
import { statement } from '../../postgres/statement.ts'

const list = statement<{ fault: DevFault }>('dev_faults', 'SELECT fault FROM dev_faults ORDER BY position')

const insert = statement<never, { id: string; fault: string }>(
  'dev_fault_insert',
  'INSERT INTO dev_faults (id, fault) VALUES (:id, :fault::jsonb)',
)

const update = statement<never, { id: string; fault: string }>(
  'dev_fault_update',
  'UPDATE dev_faults SET fault = :fault::jsonb WHERE id = :id',
)

const remove = statement<never, { id: string | null }>(
  'dev_fault_delete',
  'DELETE FROM dev_faults WHERE :id::uuid IS NULL OR id = :id::uuid',
)

export const listFaults = async (db: Queryable): Promise<DevFault[]> =>
  (await list.all(db)).map(({ fault }) => fault)

export const insertFault = (db: Queryable, fault: DevFault) =>
  insert.run(db, { id: fault.id, fault: JSON.stringify(fault) })

/** Writes the counts of a fault, unless it was deleted. */
export const updateFault = (db: Queryable, fault: DevFault) =>
  update.run(db, { id: fault.id, fault: JSON.stringify(fault) })

/** Deletes one fault, or all if the id is null. */
export const deleteFaults = remove.runBy('id')

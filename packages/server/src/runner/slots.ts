import type { SlotHolder } from '../domain/slot-shares.ts'
import type { Tx } from '../postgres/database.ts'
import type { ClaimedOperation } from '../store/compute/operation-row.ts'

/** A worker's slot, reserved for an operation that is being written. */
export interface Slot {
  /** The lease that the operation begins with. */
  lease: { token: string; ms: number }
  /** Puts the operation into the slot. The worker begins it after the commit. */
  fill(operation: ClaimedOperation): void
  /** Begins the operation in the slot, or frees the slot. */
  close(isCommitted: boolean): void
}

/** A worker that can begin operations that its own process writes, without claiming them. */
export interface SlotOwner {
  reserve(holder: SlotHolder, location: string): Slot | undefined
}

const owners = new WeakMap<object, SlotOwner>()

export function offerSlots(database: object, owner: SlotOwner): void {
  owners.set(database, owner)
}

/** Returns a slot for an operation that the transaction writes; undefined if there is none. */
export function reserveSlot(tx: Tx, holder: SlotHolder, location: string): Slot | undefined {
  const slot = tx.database && owners.get(tx.database)?.reserve(holder, location)
  if (slot) tx.onEnd((isCommitted) => slot.close(isCommitted))
  return slot
}

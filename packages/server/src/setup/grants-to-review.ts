import type { Log } from '../services.ts'
import type { Database } from '../store/database.ts'
import { takeGrantsToReview } from '../store/identity/grants-to-review.ts'

/**
 * After an upgrade from a version whose grants took effect without a link: they stay valid, and are listed once, since
 * whoever registered an address first may hold one that was meant for somebody else.
 */
export async function listGrantsToReview(database: Database, log: Log): Promise<void> {
  await database.transaction(async (tx) => {
    for (const grant of await takeGrantsToReview(tx))
      log.warn({ grant }, 'granted without proof of who holds the address: look whether it is right')
  })
}

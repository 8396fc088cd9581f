import type { RouteId } from '@slipway/contract'
import { isUuid } from '../domain/ids.ts'
import type { Database } from '../postgres/database.ts'
import { emit, type Requester } from '../store/events/events.ts'
import { listOwners } from '../store/identity/organizations.ts'

/**
 * Records which tenants' data an operator has seen: one event for each organization and request. What is
 * recorded depends on the data in the response, not on the request. Must be called before the response, or a
 * part of it, is sent.
 */
export class OperatorReads {
  readonly #database: Database
  readonly #by: Requester
  readonly #routeId: RouteId
  /** The projects and organizations whose data this request has already recorded as seen. */
  readonly #recorded = new Set<string>()

  constructor(database: Database, by: Requester, routeId: RouteId) {
    this.#database = database
    this.#by = by
    this.#routeId = routeId
  }

  /** Returns whether `shown` contains data of a tenant that is not recorded yet. */
  isUnrecorded(shown: unknown): boolean {
    return this.#unrecordedIn(shown).length > 0
  }

  async record(shown: unknown): Promise<void> {
    const ids = this.#unrecordedIn(shown)
    if (ids.length === 0) return
    const owners = await listOwners(this.#database, ids)
    const fresh = new Set(owners.map(({ id }) => id).filter((id) => !this.#recorded.has(id)))
    await this.#database.transaction(async (tx) => {
      for (const id of fresh)
        await emit(tx, {
          ...this.#by,
          type: 'operator.read',
          resourceType: 'organization',
          resourceId: id,
          data: { route: this.#routeId },
        })
    })
    for (const id of [...ids, ...fresh]) this.#recorded.add(id)
  }

  #unrecordedIn(shown: unknown): string[] {
    return [...tenantIdsIn(shown)].filter((id) => !this.#recorded.has(id))
  }
}

/** Returns the ids of projects and organizations that the records in this value belong to. */
function tenantIdsIn(value: unknown, found = new Set<string>()): Set<string> {
  if (typeof value !== 'object' || value === null) return found
  for (const [name, member] of Object.entries(value)) {
    const isTenant = name === 'project_id' || name === 'organization_id'
    if (isTenant && typeof member === 'string' && isUuid(member)) found.add(member)
    else tenantIdsIn(member, found)
  }
  return found
}

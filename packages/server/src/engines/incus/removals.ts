import { type Call, EngineError } from '../engine.ts'
import { isDuplicate, unavailable } from './client.ts'
import type { IncusContext } from './context.ts'
import { generationOf } from './instances.ts'
import { findProfile, listProfiles, putProfile, removeProfile } from './profiles.ts'

const keptMs = 2 * 24 * 3600 * 1000
const removedAtKey = 'user.slipway.gone-at'
const nameOf = (id: string) => `gone-${id}`

/**
 * Throws if the object was removed. A profile with the id of a removed object records its removal. A removal writes the
 * profile and then looks for the object; a creation creates the object in a state in which it cannot start (see
 * engine.ts), and then looks for the profile. So at least one of the two sees the other.
 */
export async function requireNotRemoved(ctx: IncusContext, id: string, call: Call): Promise<void> {
  const found = await findProfile(ctx, nameOf(id), call.signal)
  if (found) throw new EngineError('stale', `${id} was removed at generation ${generationOf(found)}`)
}

/** Throws `stale` if a newer generation removed the object. */
export async function recordRemoval(ctx: IncusContext, id: string, call: Call): Promise<void> {
  const profile = { config: { [removedAtKey]: new Date().toISOString() }, description: 'Slipway: removed' }
  await putProfile(ctx, nameOf(id), id, call, profile).catch((error) => {
    if (!isDuplicate(error)) throw unavailable(error)
  })
}

/**
 * Deletes records that are older than `keptMs`. Every worker that could have recreated the object has lost
 * its lease by then.
 */
export async function deleteOldRemovalRecords(ctx: IncusContext, signal: AbortSignal): Promise<void> {
  for (const { name, config } of await listProfiles(ctx, signal))
    if (config[removedAtKey] && Date.now() - Date.parse(config[removedAtKey]) > keptMs)
      await removeProfile(ctx, name, signal).catch(() => {})
}

import type { Call } from '../engine.ts'
import { unavailable } from './client.ts'
import type { IncusContext } from './context.ts'
import { marks } from './instances.ts'
import { findProfile, listProfiles, putProfile, removeProfile } from './profiles.ts'

/**
 * Disks of a pool that is local to each member, before their first VM decides on which member they are. A volume would have
 * to be created on some member, and a VM on another member could not use it. Until then a profile records the disk.
 */
const prefix = 'disk-'
const nameOf = (id: string) => `${prefix}${id}`

export const findUnplaced = (ctx: IncusContext, id: string, signal: AbortSignal) =>
  findProfile(ctx, nameOf(id), signal)

export const listUnplaced = async (ctx: IncusContext, signal: AbortSignal) =>
  (await listProfiles(ctx, signal)).filter(({ name, config }) => name.startsWith(prefix) && config[marks.id])

/** Throws `stale` if a newer generation wrote the disk. */
export async function putUnplaced(
  ctx: IncusContext,
  id: string,
  call: Call,
  config: Record<string, string>,
): Promise<void> {
  const profile = { config, description: 'Slipway: a disk that was never attached' }
  await putProfile(ctx, nameOf(id), id, call, profile).catch((error) => {
    throw unavailable(error)
  })
}

export const dropUnplaced = (ctx: IncusContext, id: string, signal: AbortSignal) =>
  removeProfile(ctx, nameOf(id), signal)

import { type Call, staleCall } from '../engine.ts'
import type { IncusContext } from './context.ts'
import { generationMark, generationOf, marks } from './instances.ts'

/**
 * A profile that only records a fact about one of our objects, and configures nothing. Profiles with
 * different names can be written at the same time, whereas writers of different keys in the same
 * configuration would overwrite each other's changes.
 */
export interface Profile {
  name: string
  config: Record<string, string>
  /** Paths of the instances that have the profile. */
  used_by?: string[]
}

const pathOf = (name: string) => `/1.0/profiles/${name}`

export const findProfile = (ctx: IncusContext, name: string, signal: AbortSignal) =>
  ctx.client.find<Profile>(pathOf(name), { signal })

export const listProfiles = (ctx: IncusContext, signal: AbortSignal) =>
  ctx.client.get<Profile[]>('/1.0/profiles', { signal, query: { recursion: '1' } })

export const removeProfile = (ctx: IncusContext, name: string, signal: AbortSignal) =>
  ctx.client.remove(pathOf(name), { signal })

/** Throws `stale` if the profile that was found has a newer generation. */
export function requireNotNewer(
  id: string,
  found: Pick<Profile, 'config'> | undefined,
  { generation }: Pick<Call, 'generation'>,
): void {
  if (found && generationOf(found) > generation) throw staleCall(id, generation, generationOf(found))
}

/**
 * Throws `stale` if a newer generation wrote the profile. Throws Incus's error if another process creates the
 * profile at the same time.
 */
export async function putProfile(
  ctx: IncusContext,
  name: string,
  id: string,
  call: Call,
  given: { config: Record<string, string>; description: string },
): Promise<void> {
  const { generation, signal } = call
  const known = await findProfile(ctx, name, signal)
  requireNotNewer(id, known, call)
  const config = { ...known?.config, [marks.id]: id, ...given.config, ...generationMark(generation) }
  const body = { ...given, config, devices: {} }
  if (known) await ctx.client.change('PUT', pathOf(name), body, { signal })
  else await ctx.client.change('POST', '/1.0/profiles', { ...body, name }, { signal })
}

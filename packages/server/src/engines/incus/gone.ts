import { EngineError } from '../engine.ts'
import { isCode } from './client.ts'
import type { IncusContext } from './context.ts'
import { generationMark, generationOf, marks, unavailable } from './instances.ts'

/**
 * What was removed stays known by an empty profile of its id: objects of different names are made side by side without
 * loss, which keys of one project are not. Who removes writes the mark and then looks for the thing; who makes it makes it,
 * closed, and then looks for the mark: so one of the two sees the other.
 */
const keptMs = 2 * 24 * 3600 * 1000
const goneAt = 'user.slipway.gone-at'
const pathOf = (id: string) => `/1.0/profiles/gone-${id}`

interface Profile {
  name: string
  config: Record<string, string>
}

export async function requireNotGone(
  ctx: IncusContext,
  id: string,
  call: { generation: number; signal: AbortSignal },
): Promise<void> {
  const found = await ctx.client.find<Profile>(pathOf(id), { signal: call.signal })
  if (found) throw new EngineError('stale', `${id} was removed at generation ${generationOf(found.value)}`)
}

/** Throws `stale` where a newer generation removed it. */
export async function markGone(
  ctx: IncusContext,
  id: string,
  { generation, signal }: { generation: number; signal: AbortSignal },
): Promise<void> {
  const found = await ctx.client.find<Profile>(pathOf(id), { signal })
  if (found && generationOf(found.value) > generation)
    throw new EngineError('stale', `${id} was removed at generation ${generationOf(found.value)}`)
  const config = { [marks.id]: id, ...generationMark(generation), [goneAt]: new Date().toISOString() }
  const body = { config, devices: {}, description: 'Slipway: removed' }
  if (found) return ctx.client.change('PUT', pathOf(id), body, { signal })
  await ctx.client
    .change('POST', '/1.0/profiles', { ...body, name: `gone-${id}` }, { signal })
    .catch((error) => {
      if (!isCode(error, 409) && !/already exists/i.test((error as Error).message)) throw unavailable(error)
    })
}

/** Whoever is late by days is refused by its lease long before. */
export async function forgetLongGone(ctx: IncusContext, signal: AbortSignal): Promise<void> {
  const profiles = await ctx.client.get<Profile[]>('/1.0/profiles', { signal, query: { recursion: '1' } })
  for (const { name, config } of profiles)
    if (config[goneAt] && Date.now() - Date.parse(config[goneAt]) > keptMs)
      await ctx.client.change('DELETE', `/1.0/profiles/${name}`, undefined, { signal }).catch(() => {})
}

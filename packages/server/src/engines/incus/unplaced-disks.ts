import { type Call, EngineError } from '../engine.ts'
import { isCode } from './client.ts'
import type { IncusContext } from './context.ts'
import { generationMark, generationOf, marks, unavailable } from './instances.ts'

/**
 * Disks of a pool that is local to each member, before their first VM decides on which. A volume would have to be made on
 * some member, and a VM elsewhere could not have it: until then an empty profile of the disk's id says what is promised.
 */
export interface UnplacedDisk {
  name: string
  config: Record<string, string>
}

const prefix = 'disk-'
const pathOf = (id: string) => `/1.0/profiles/${prefix}${id}`

export const findUnplaced = async (ctx: IncusContext, id: string, signal: AbortSignal) =>
  (await ctx.client.find<UnplacedDisk>(pathOf(id), { signal }))?.value

export async function listUnplaced(ctx: IncusContext, signal: AbortSignal): Promise<UnplacedDisk[]> {
  const query = { recursion: '1' }
  const profiles = await ctx.client.get<UnplacedDisk[]>('/1.0/profiles', { signal, query })
  return profiles.filter(({ name, config }) => name.startsWith(prefix) && config[marks.id])
}

/** Throws `stale` where a newer generation wrote what was found of a disk. */
export function requireNotNewer(
  id: string,
  found: Pick<UnplacedDisk, 'config'> | undefined,
  { generation }: Pick<Call, 'generation'>,
): void {
  if (found && generationOf(found) > generation)
    throw new EngineError('stale', `${id}: generation ${generation} comes after ${generationOf(found)}`)
}

/** Throws `stale` where a newer generation wrote it. */
export async function putUnplaced(
  ctx: IncusContext,
  id: string,
  { generation, signal }: Call,
  config: Record<string, string>,
): Promise<void> {
  const known = await findUnplaced(ctx, id, signal)
  requireNotNewer(id, known, { generation })
  const body = {
    config: { ...known?.config, [marks.id]: id, ...config, ...generationMark(generation) },
    ...{ devices: {}, description: 'Slipway: a disk that no VM has had yet' },
  }
  await (known
    ? ctx.client.change('PUT', pathOf(id), body, { signal })
    : ctx.client.change('POST', '/1.0/profiles', { ...body, name: `${prefix}${id}` }, { signal })
  ).catch((error) => {
    throw unavailable(error)
  })
}

export async function dropUnplaced(ctx: IncusContext, id: string, signal: AbortSignal): Promise<void> {
  await ctx.client.change('DELETE', pathOf(id), undefined, { signal }).catch((error) => {
    if (!isCode(error, 404)) throw unavailable(error)
  })
}

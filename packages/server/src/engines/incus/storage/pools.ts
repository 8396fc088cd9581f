import type { IncusConfig } from '../../../config/index.ts'
import type { DiskSpec } from '../../engine.ts'
import type { IncusContext } from '../context.ts'
import { environmentOf } from '../fleet/members.ts'

/** The pool of each placed disk, by disk id. */
export type DiskPools = Map<string, string>

/** Returns the storage pool of new disks of this type. */
export const poolOf = (config: IncusConfig, type: DiskSpec['type']): string =>
  (type === 'shared-volume' ? config.sharedVolumePool : config.diskPool) || config.storagePool

/**
 * Returns all pools that can contain data disks. The default pool is one of them, because it may have disks
 * that were created before an operator set other pools.
 */
export const diskPools = (config: IncusConfig): string[] => [
  ...new Set([poolOf(config, 'persistent-ssd'), poolOf(config, 'shared-volume'), config.storagePool]),
]

export const volumesPath = (pool: string) => `/1.0/storage-pools/${pool}/volumes/custom`

/** Returns a custom volume with its pool. Names are unique among all pools. */
export async function findVolume<T>(
  ctx: IncusContext,
  name: string,
  signal: AbortSignal,
): Promise<(T & { pool: string; path: string }) | undefined> {
  for (const pool of diskPools(ctx.config)) {
    const path = `${volumesPath(pool)}/${name}`
    const volume = await ctx.client.find<T>(path, { signal })
    if (volume) return { ...volume, pool, path }
  }
  return undefined
}

/**
 * Returns whether each member of the cluster has its own part of the pool, which other members cannot access.
 */
export async function isPoolLocal(ctx: IncusContext, pool: string, signal: AbortSignal): Promise<boolean> {
  const environment = await environmentOf(ctx, signal)
  if (!environment.server_clustered) return false
  const found = await ctx.client.find<{ driver: string }>(`/1.0/storage-pools/${pool}`, { signal })
  const drivers = environment.storage_supported_drivers ?? []
  return drivers.some(({ Name, Remote }) => Name === found?.driver && !Remote)
}

/** Times are milliseconds since 1970. */

/** A VM that has GPUs of a host, or a reservation that has them for VMs to come. */
export interface RunningVm {
  gpus: number
  /** When its time to live, or the reservation, is over; null if that is not known. */
  endsAt: number | null
  /** Since when it has the GPUs. */
  since: number
  /** When the reservation of the GPUs ends: until then they go back to it. Null without a reservation. */
  reservedUntil: number | null
}

export interface LaneHost {
  id: string
  /** GPUs that are free, or will be after their reset. */
  free: number
  vms: RunningVm[]
}

export interface Waiting {
  id: string
  /** The GPUs of one VM. */
  gpus: number
  /** One, or the number of members of a group. */
  vms: number
  /** Each member on a host of its own. */
  isSpread: boolean
  /** The only host that it can use; null for any. */
  hostId: string | null
  since: number
  /** The time to live of its VM; null if it has none. */
  ttlMs: number | null
  /** It does not exist: it takes no GPUs. */
  isImagined?: boolean
}

export interface LaneState {
  now: number
  hosts: LaneHost[]
  /** In order of the queue. */
  waiting: Waiting[]
  /** How long VMs of the family had their GPUs, in ascending order. */
  livesMs: number[]
  accumulateAfterMs: number
}

/**
 * Chooses the host whose GPUs are held for a request until they suffice: the one where they are free first by the VMs' times
 * to live, otherwise the one with the fewest GPUs left to free.
 */
export function chooseTarget(
  hosts: LaneHost[],
  { gpus, hostId }: Pick<Waiting, 'gpus' | 'hostId'>,
): string | undefined {
  const ranked = hosts
    .filter(({ id, free, vms }) => {
      const most = free + vms.reduce((sum, vm) => sum + vm.gpus, 0)
      return (hostId ?? id) === id && most >= gpus
    })
    .map((host) => ({ id: host.id, freeAt: freeAt(host, gpus), missing: gpus - host.free }))
  ranked.sort((a, b) => a.freeAt - b.freeAt || a.missing - b.missing || (a.id < b.id ? -1 : 1))
  return ranked[0]?.id
}

/** When `gpus` GPUs of a host are free, if only VMs with a time to live end; a huge number if that is not enough. */
function freeAt({ free, vms }: LaneHost, gpus: number): number {
  let count = free
  if (count >= gpus) return Number.NEGATIVE_INFINITY
  const ending = vms.filter(({ endsAt }) => endsAt !== null).sort((a, b) => a.endsAt! - b.endsAt!)
  for (const { endsAt, gpus: freed } of ending) {
    count += freed
    if (count >= gpus) return endsAt!
  }
  return Number.MAX_SAFE_INTEGER
}

/** Times are in milliseconds since 1970. */

/** A VM that uses GPUs of a host, or a reservation that holds them for later VMs. */
export interface RunningVm {
  gpus: number
  /** When the VM's time to live or the reservation ends; null if that is not known. */
  endsAt: number | null
  /** When the VM or reservation got the GPUs. */
  since: number
  /**
   * When the reservation of the GPUs ends. Until then, freed GPUs return to the reservation. Null without a
   * reservation.
   */
  reservedUntil: number | null
}

export interface QueueHost {
  id: string
  /** The number of GPUs that are free, or will be free after a reset. */
  free: number
  vms: RunningVm[]
}

export interface WaitingRequest {
  id: string
  /** The GPUs of one VM. */
  gpus: number
  /** One, or the number of members of a group. */
  vms: number
  /** True if each member needs a separate host. */
  isSpread: boolean
  /** The only host that the request can use; null for any. */
  hostId: string | null
  since: number
  /** The time to live of the requested VM; null if the VM has none. */
  ttlMs: number | null
  /** True for a hypothetical request at the end of the queue. Its estimate is computed, but it takes no GPUs. */
  isHypothetical?: boolean
}

export interface QueueState {
  now: number
  hosts: QueueHost[]
  /** In queue order. */
  waiting: WaitingRequest[]
  /** How long past VMs of the family ran, in ascending order. */
  runtimesMs: number[]
  accumulateAfterMs: number
}

/**
 * Chooses the host whose free GPUs are held for a request until there are enough. Prefers the host on which
 * enough GPUs become free first according to the VMs' times to live, then the host with the fewest missing
 * GPUs.
 */
export function chooseTarget(
  hosts: QueueHost[],
  { gpus, hostId }: Pick<WaitingRequest, 'gpus' | 'hostId'>,
): string | undefined {
  const ranked = hosts
    .filter(({ id, free, vms }) => {
      const total = free + vms.reduce((sum, vm) => sum + vm.gpus, 0)
      return (hostId ?? id) === id && total >= gpus
    })
    .map((host) => ({ id: host.id, freeAt: freeAt(host, gpus), missing: gpus - host.free }))
  ranked.sort((a, b) => a.freeAt - b.freeAt || a.missing - b.missing || (a.id < b.id ? -1 : 1))
  return ranked[0]?.id
}

/**
 * Returns the time at which `gpus` GPUs of a host are free if only VMs with a time to live end; a very large
 * number if those VMs do not have enough GPUs.
 */
function freeAt({ free, vms }: QueueHost, gpus: number): number {
  let count = free
  if (count >= gpus) return Number.NEGATIVE_INFINITY
  const ending = vms.filter(({ endsAt }) => endsAt !== null).sort((a, b) => a.endsAt! - b.endsAt!)
  for (const { endsAt, gpus: freed } of ending) {
    count += freed
    if (count >= gpus) return endsAt!
  }
  return Number.MAX_SAFE_INTEGER
}

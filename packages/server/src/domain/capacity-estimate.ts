/** Times are milliseconds since 1970. */

/** A VM that has GPUs of a host. */
export interface RunningVm {
  gpus: number
  /** When its TTL expires; null if it has none. */
  endsAt: number | null
  /** When it got the GPUs. */
  since: number
}

export interface LaneHost {
  id: string
  /** GPUs that are free, or will be after their reset. */
  free: number
  vms: RunningVm[]
}

export interface Waiting {
  id: string
  gpus: number
  /** The only host that it can use; null for any. */
  hostId: string | null
  since: number
  /** The TTL of its VM; null if it has none. */
  ttlMs: number | null
}

export interface Estimate {
  earliestAt: number | null
  likelyAt: number | null
  latestAt: number | null
  basis: 'expiries' | 'history' | 'none'
}

export interface LaneState {
  now: number
  hosts: LaneHost[]
  /** In the order of the queue. */
  waiting: Waiting[]
  /** How long VMs of the family had their GPUs, in ascending order. */
  livesMs: number[]
  accumulateAfterMs: number
}

/** The fewest VMs from which the life of other VMs is estimated. */
const fewestLives = 30

/**
 * Estimates when each request is granted, by simulating the queue. At first only VMs with a TTL end. If that is not enough
 * for a request, the other VMs end after the times that VMs of the family ran in the past.
 */
export function estimate(lane: LaneState): Map<string, Estimate> {
  const known = replay(lane, ({ endsAt }) => endsAt)
  const byHistory = (share: number) =>
    lane.livesMs.length < fewestLives
      ? new Map<string, number>()
      : replay(
          lane,
          ({ endsAt, since }) => endsAt ?? lane.now + remainingMs(lane.livesMs, lane.now - since, share),
        )
  const [early, likely, late] = [byHistory(0.1), byHistory(0.5), byHistory(0.9)]
  return new Map(
    lane.waiting.map(({ id }): [string, Estimate] => {
      const at = known.get(id)
      const likelyAt = likely.get(id)
      if (at !== undefined && (likelyAt === undefined || likelyAt >= at))
        return [id, { earliestAt: at, likelyAt: at, latestAt: at, basis: 'expiries' }]
      if (likelyAt === undefined)
        return [id, { earliestAt: null, likelyAt: null, latestAt: null, basis: 'none' }]
      const earliestAt = Math.min(early.get(id) ?? likelyAt, likelyAt)
      const latestAt = Math.max(late.get(id) ?? at ?? likelyAt, likelyAt)
      return [id, { earliestAt, likelyAt, latestAt, basis: 'history' }]
    }),
  )
}

/** Returns how long a VM of this age will continue to run, for a share of the VMs that reached this age. */
export function remainingMs(livesMs: number[], ageMs: number, share: number): number {
  const older = livesMs.filter((life) => life > ageMs)
  // The VM is older than all known VMs were, so the only data is how long VMs usually run.
  if (older.length === 0) return livesMs[Math.ceil(share * livesMs.length) - 1]!
  return older[Math.max(0, Math.ceil(share * older.length) - 1)]! - ageMs
}

/**
 * Ends VMs in the order of time, and gives their GPUs to the queue according to its rules. Returns when each request is
 * granted.
 */
function replay(
  { now, hosts, waiting, accumulateAfterMs }: LaneState,
  endOf: (vm: RunningVm) => number | null,
): Map<string, number> {
  const granted = new Map<string, number>()
  const free = new Map(hosts.map((host) => [host.id, host.free]))
  const ends = hosts.flatMap(({ id, vms }) =>
    vms.flatMap((vm) => {
      const at = endOf(vm)
      return at === null ? [] : [{ at: Math.max(at, now), hostId: id, gpus: vm.gpus }]
    }),
  )
  const left = [...waiting]
  let target: { requestId: string; hostId: string } | undefined
  let at = now
  for (;;) {
    serve()
    if (left.length === 0) return granted
    ends.sort((a, b) => a.at - b.at)
    const next = ends[0]
    if (!next) return granted
    at = next.at
    while (ends[0]?.at === at) {
      const { hostId, gpus } = ends.shift()!
      free.set(hostId, free.get(hostId)! + gpus)
    }
  }

  function serve(): void {
    for (let index = 0; index < left.length; ) {
      const request = left[index]!
      if (index === 0) target = targetOf(request)
      const host = hostFor(request)
      if (host === undefined) index++
      else {
        grant(request, host)
        left.splice(index, 1)
        index = 0
      }
    }
  }

  function grant(request: Waiting, hostId: string): void {
    granted.set(request.id, at)
    free.set(hostId, free.get(hostId)! - request.gpus)
    const end = endOf({
      gpus: request.gpus,
      endsAt: request.ttlMs === null ? null : at + request.ttlMs,
      since: now,
    })
    if (end !== null) ends.push({ at: Math.max(end, at), hostId, gpus: request.gpus })
  }

  /** Returns the fullest host where the request fits. The target of the first request is closed for other requests. */
  function hostFor({ id, gpus, hostId }: Waiting): string | undefined {
    const fitting = [...free].filter(
      ([host, count]) =>
        count >= gpus && (hostId ?? host) === host && (target?.hostId !== host || target.requestId === id),
    )
    return fitting.sort(([a, m], [b, n]) => m - n || (a < b ? -1 : 1))[0]?.[0]
  }

  function targetOf(request: Waiting): typeof target {
    if (request.gpus === 1 || at < request.since + accumulateAfterMs) return undefined
    if (target?.requestId === request.id) return target
    const rest = hosts.map((host) => ({
      id: host.id,
      free: free.get(host.id)!,
      vms: ends
        .filter((end) => end.hostId === host.id)
        .map((end) => ({ gpus: end.gpus, endsAt: end.at, since: now })),
    }))
    const hostId = chooseTarget(rest, request)
    return hostId === undefined ? undefined : { requestId: request.id, hostId }
  }
}

/**
 * Chooses the host on which GPUs are held for a request until there are enough: the host where they are free first
 * according to the TTLs of its VMs, otherwise the host that lacks the fewest free GPUs.
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

/** Returns when `gpus` GPUs of a host are free if only VMs with a TTL end; a huge number if that is not enough. */
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

import { chooseTarget, type QueueState, type RunningVm, type WaitingRequest } from './queue.ts'

/** A time at which GPUs of a host become free. */
interface End {
  at: number
  hostId: string
  gpus: number
}

/**
 * Simulates the queue: ends VMs in chronological order, and gives their GPUs to requests by the rules of the
 * queue.
 */
export class QueueSimulation {
  readonly #queue: QueueState
  readonly #endOf: (vm: RunningVm) => number | null
  readonly #granted = new Map<string, number>()
  readonly #free: Map<string, number>
  readonly #room: GroupRoom
  /** In chronological order. */
  readonly #ends: End[]
  readonly #waiting: WaitingRequest[]
  /** The host whose GPUs are kept for the first request; `hostId` is undefined if no host can serve it. */
  #target: { requestId: string; hostId: string | undefined } | undefined
  #at: number

  constructor(queue: QueueState, endOf: (vm: RunningVm) => number | null) {
    this.#queue = queue
    this.#endOf = endOf
    this.#at = queue.now
    this.#waiting = [...queue.waiting]
    this.#free = new Map(queue.hosts.map(({ id, free }) => [id, free]))
    this.#room = new GroupRoom(queue)
    this.#ends = queue.hosts
      .flatMap(({ id, vms }) =>
        vms.flatMap((vm) => {
          const at = endOf(vm)
          return at === null ? [] : [{ at: Math.max(at, queue.now), hostId: id, gpus: vm.gpus }]
        }),
      )
      .sort((a, b) => a.at - b.at)
  }

  /** Returns the time at which each request is granted, by request id. */
  run(): Map<string, number> {
    this.#serve(new Set(this.#queue.hosts.flatMap(({ id, free }) => (free > 0 ? [id] : []))))
    for (let next = 0; next < this.#ends.length && this.#waiting.length > 0; ) {
      this.#at = this.#ends[next]!.at
      const changed = new Set<string>()
      for (; this.#ends[next]?.at === this.#at; next++) {
        const { hostId, gpus } = this.#ends[next]!
        this.#add(hostId, gpus)
        changed.add(hostId)
      }
      this.#serve(changed)
    }
    return this.#granted
  }

  /**
   * Grants the requests that fit now. Only hosts that have changed can serve a request that did not fit
   * before.
   */
  #serve(changed: Set<string>): void {
    for (let index = 0; index < this.#waiting.length; ) {
      if (index === 0) this.#chooseTarget()
      const request = this.#waiting[index]!
      const hosts = request.vms > 1 ? this.#hostsForGroup(request, changed) : this.#hostFor(request, changed)
      if (!hosts) {
        index++
        continue
      }
      const isHead = request === this.#head()
      this.#grant(request, hosts)
      this.#waiting.splice(index, 1)
      if (!isHead) continue
      // The target host is open to other requests again, and the next request may get a target.
      if (this.#target?.hostId !== undefined) changed.add(this.#target.hostId)
      index = 0
    }
  }

  /** Returns the first request for a single VM. Groups and hypothetical requests do not accumulate GPUs. */
  #head(): WaitingRequest | undefined {
    return this.#waiting.find(({ vms, isHypothetical }) => vms === 1 && !isHypothetical)
  }

  #grant(request: WaitingRequest, hostIds: string[]): void {
    this.#granted.set(request.id, this.#at)
    const { gpus, ttlMs, isHypothetical } = request
    if (isHypothetical) return
    const endsAt = ttlMs === null ? null : this.#at + ttlMs
    const end = this.#endOf({ gpus, endsAt, since: this.#queue.now, reservedUntil: null })
    for (const hostId of hostIds) {
      this.#add(hostId, -gpus)
      if (end !== null) this.#insert({ at: Math.max(end, this.#at), hostId, gpus })
    }
  }

  #insert(end: End): void {
    let [low, high] = [0, this.#ends.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if (this.#ends[middle]!.at <= end.at) low = middle + 1
      else high = middle
    }
    this.#ends.splice(low, 0, end)
  }

  #add(hostId: string, gpus: number): void {
    const before = this.#free.get(hostId)!
    this.#free.set(hostId, before + gpus)
    this.#room.change(before, before + gpus)
  }

  /** The target host of the first request is closed to other requests. */
  #isOpenTo(id: string, hostId: string): boolean {
    return this.#target?.hostId !== hostId || this.#target.requestId === id
  }

  /** Returns the fullest host where the request fits. */
  #hostFor({ id, gpus, hostId }: WaitingRequest, changed: Set<string>): string[] | undefined {
    let best: string | undefined
    for (const host of changed) {
      const free = this.#free.get(host)!
      if (free < gpus || (hostId ?? host) !== host || !this.#isOpenTo(id, host)) continue
      const bestFree = best === undefined ? Number.POSITIVE_INFINITY : this.#free.get(best)!
      if (free < bestFree || (free === bestFree && host < best!)) best = host
    }
    return best === undefined ? undefined : [best]
  }

  /** Returns a host for each member; undefined if not all members fit. */
  #hostsForGroup(request: WaitingRequest, changed: Set<string>): string[] | undefined {
    const { id, gpus, vms, isSpread, hostId } = request
    if (this.#room.of(request) < vms) return undefined
    if (![...changed].some((host) => this.#free.get(host)! >= gpus)) return undefined
    const open = [...this.#free].filter(
      ([host, free]) => free >= gpus && (hostId ?? host) === host && this.#isOpenTo(id, host),
    )
    const hosts: string[] = []
    for (const [host, free] of open.sort(([a, m], [b, n]) => m - n || (a < b ? -1 : 1)))
      for (let count = isSpread ? 1 : Math.floor(free / gpus); count > 0 && hosts.length < vms; count--)
        hosts.push(host)
    return hosts.length === vms ? hosts : undefined
  }

  /** Gives the first request a target when it has waited long enough. */
  #chooseTarget(): void {
    const head = this.#head()
    if (!head || head.gpus === 1 || this.#at < head.since + this.#queue.accumulateAfterMs) {
      this.#target = undefined
      return
    }
    if (this.#target?.requestId === head.id) return
    const ends = new Map<string, RunningVm[]>()
    for (const { at, hostId, gpus } of this.#ends)
      if (at > this.#at)
        ends.set(hostId, [
          ...(ends.get(hostId) ?? []),
          { gpus, endsAt: at, since: this.#queue.now, reservedUntil: null },
        ])
    const hosts = [...this.#free].map(([id, free]) => ({ id, free, vms: ends.get(id) ?? [] }))
    this.#target = { requestId: head.id, hostId: chooseTarget(hosts, head) }
  }
}

/** For each number of GPUs per member, counts how many group members fit on all hosts together. */
class GroupRoom {
  readonly #vms = new Map<number, { vms: number; hosts: number }>()

  constructor({ waiting, hosts }: QueueState) {
    for (const { vms, gpus } of waiting) if (vms > 1) this.#vms.set(gpus, { vms: 0, hosts: 0 })
    for (const { free } of hosts) this.change(0, free)
  }

  change(before: number, after: number): void {
    for (const [gpus, room] of this.#vms) {
      room.vms += Math.floor(after / gpus) - Math.floor(before / gpus)
      room.hosts += Number(after >= gpus) - Number(before >= gpus)
    }
  }

  of({ gpus, isSpread }: WaitingRequest): number {
    const { vms, hosts } = this.#vms.get(gpus)!
    return isSpread ? hosts : vms
  }
}

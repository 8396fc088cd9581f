import { EngineError } from '../../engine.ts'
import { IncusError } from '../client.ts'
import type { IncusContext } from '../context.ts'
import { findUplink } from '../networks.ts'
import type { Member } from './members.ts'
import { type Resources, readResources } from './resources.ts'

/** Events report changes. A full read at this interval covers events that were lost. */
const fullReadMs = 60_000
/** Hardware changes only when the member is down, which Incus shows as a different status. */
const resourcesMs = 600_000
/**
 * Together with the other reads of an inventory, this is less than the time that an inventory has for one
 * batch of hosts.
 */
const resourcesReadMs = 6_000
/**
 * A member that did not respond is not read again during this time, so that it delays each inspection only
 * once. Even after the member has returned, requests to it succeed only once the member that forwards them
 * has noticed the return.
 */
const silentMs = 2_000
/**
 * How long a new offline status is not trusted: Incus may show a member as offline only because the leader
 * that counts its heartbeats was lost.
 */
const recheckMs = 60_000
/** The time limit for members that may be down. It is short, because all other reports wait for them. */
const recheckReadMs = 2_000
/**
 * Incus sends heartbeats every ten seconds, and records them for all members at once. If a member is still
 * offline after this time while most members are online, the leader has recorded heartbeats without it.
 */
const electionMs = 10_000

/** Remembers what the last inventory read, and whether that may have changed since. */
export class Survey {
  readonly #ctx: IncusContext
  readonly #isFollowing: () => boolean
  readonly #resources = new Map<string, { resources: Resources | null; untilMs: number }>()
  /** The problems that the last full read found on each member, which an operator has to fix. */
  readonly problems = new Map<string, string[]>()
  readonly #offline = new Map<string, { sinceMs: number; lateSinceMs?: number }>()
  #hasChanges = true
  #readAtMs = Number.NEGATIVE_INFINITY
  #members = ''
  #uplink: { name: string | undefined; readAtMs: number } | undefined

  /** `isFollowing` returns whether events are being received. */
  constructor(ctx: IncusContext, isFollowing: () => boolean) {
    this.#ctx = ctx
    this.#isFollowing = isFollowing
  }

  markChanged(): void {
    this.#hasChanges = true
  }

  /** Returns true if only the members have to be read again. */
  isCurrent(members: Member[]): boolean {
    const isRecent = performance.now() - this.#readAtMs < fullReadMs
    return isRecent && !this.#hasChanges && this.#isFollowing() && this.#members === textOf(members)
  }

  /** Runs a full read. Events that arrive in the meantime cause another full read. */
  async read<T>(members: Member[], work: () => Promise<T>): Promise<T> {
    this.#hasChanges = false
    const startedAtMs = performance.now()
    try {
      const result = await work()
      this.#readAtMs = startedAtMs
      this.#members = textOf(members)
      return result
    } catch (error) {
      this.#hasChanges = true
      throw error
    }
  }

  /** Returns the uplink of OVN networks, which an operator creates once. */
  async uplink(signal: AbortSignal): Promise<string | undefined> {
    if (!this.#uplink || performance.now() - this.#uplink.readAtMs > fullReadMs)
      this.#uplink = { name: await findUplink(this.#ctx, signal), readAtMs: performance.now() }
    return this.#uplink.name
  }

  /** Returns null if the member does not respond. */
  async resourcesOf(member: string | null, signal: AbortSignal): Promise<Resources | null> {
    const key = member ?? ''
    const known = this.#resources.get(key)
    if (known && performance.now() < known.untilMs) return known.resources
    const wasSilent = known?.resources === null
    const timeout = AbortSignal.timeout(wasSilent ? recheckReadMs : resourcesReadMs)
    const limit = AbortSignal.any([signal, timeout])
    const resources = await readResources(this.#ctx, member, limit).catch(() => null)
    const untilMs = performance.now() + (resources ? resourcesMs : silentMs)
    this.#resources.set(key, { resources, untilMs })
    return resources
  }

  /**
   * Probes the members that Incus began to show as offline a short time ago, and returns all members with
   * their real status. While a cluster elects a leader, Incus can show healthy members as offline, and
   * requests to them can take too long. Therefore this fails if more than half of the members do not respond.
   * It also fails while an election may be in progress: for `electionMs` after a probe of a member first took
   * too long, and as long as Incus shows more than half of the members as offline.
   */
  async recheckOffline(members: Member[], signal: AbortSignal): Promise<Member[]> {
    const results = await Promise.all(members.map((member) => this.#probeIfOffline(member, signal)))
    const failed = results.filter((result) => result === 'no' || result === 'late')
    const probed = results.filter((result) => result !== 'not probed')
    const mayBeElecting =
      results.includes('maybe electing') || (results.includes('late') && probed.length * 2 > members.length)
    if (mayBeElecting || failed.length * 2 > members.length)
      throw new EngineError(
        'unavailable',
        'Incus shows members as offline, and requests to them take too long',
      )
    return members.map((member, index) => {
      if (results[index] === 'yes') return { ...member, status: 'Online' }
      // An offline member may come back with different hardware.
      if (member.status === 'Offline') this.#resources.delete(member.name)
      return member
    })
  }

  /** Members that are not offline, or have been offline for longer than `recheckMs`, are not probed. */
  async #probeIfOffline(
    { name, status }: Member,
    signal: AbortSignal,
  ): Promise<'yes' | 'no' | 'late' | 'maybe electing' | 'not probed'> {
    if (status !== 'Offline') {
      this.#offline.delete(name)
      return 'not probed'
    }
    const offline = this.#offline.get(name) ?? { sinceMs: performance.now() }
    this.#offline.set(name, offline)
    const isRecent = performance.now() - offline.sinceMs < recheckMs
    const probedAtMs = performance.now()
    const result = isRecent ? await this.#probe(name, signal) : 'not probed'
    if (result !== 'late') return result
    offline.lateSinceMs ??= probedAtMs
    return performance.now() - offline.lateSinceMs < electionMs ? 'maybe electing' : 'late'
  }

  /** Returns `no` if another member responds that it cannot reach this one. */
  #probe(member: string, signal: AbortSignal): Promise<'yes' | 'no' | 'late'> {
    const limit = AbortSignal.any([signal, AbortSignal.timeout(recheckReadMs)])
    return readResources(this.#ctx, member, limit).then(
      () => 'yes',
      (error) => ([error, error.cause].some((one) => one instanceof IncusError) ? 'no' : 'late'),
    )
  }
}

/** Returns what a report depends on. Messages are excluded, because they contain times. */
const textOf = (members: Member[]) =>
  JSON.stringify(members.map(({ name, status, config }) => [name, status, config]))

import { IncusError } from '../client.ts'
import type { IncusContext } from '../context.ts'
import { findUplink } from '../networks.ts'
import type { Member } from './members.ts'
import { type Resources, readResources } from './resources.ts'

/** Events report changes. A full read at this interval covers events that were lost. */
const fullReadMs = 60_000
/** Hardware changes only with a reboot, after which the member has another status for a while. */
const resourcesMs = 600_000
/** A member that did not answer is not asked again for this time, so that it does not delay the reports of other members. */
const silentMs = 10_000
/** Incus may show a member as offline only because the leader that counts its heartbeats was lost. */
const doubtMs = 60_000
const doubtedReadMs = 2_000

/** What the last inventory read, and whether it can have changed since. */
export class Survey {
  readonly #ctx: IncusContext
  readonly #isFollowing: () => boolean
  readonly #resources = new Map<string, { resources: Resources | null; untilMs: number }>()
  /** The problems that the last full read found on each member, which an operator has to fix. */
  readonly problems = new Map<string, string[]>()
  readonly #offline = new Map<string, { sinceMs: number; isUnknown: boolean }>()
  #hasNews = true
  #readAtMs = Number.NEGATIVE_INFINITY
  #members = ''
  #uplink: { name: string | undefined; readAtMs: number } | undefined

  /** `isFollowing` returns whether events arrive. */
  constructor(ctx: IncusContext, isFollowing: () => boolean) {
    this.#ctx = ctx
    this.#isFollowing = isFollowing
  }

  noteEvent(): void {
    this.#hasNews = true
  }

  /** Returns whether nothing has to be read except the members. */
  isCurrent(members: Member[]): boolean {
    const isRecent = performance.now() - this.#readAtMs < fullReadMs
    return isRecent && !this.#hasNews && this.#isFollowing() && this.#members === textOf(members)
  }

  /** Runs a full read. Events that arrive in the meantime cause another one. */
  async read<T>(members: Member[], work: () => Promise<T>): Promise<T> {
    this.#hasNews = false
    const begunAtMs = performance.now()
    try {
      const result = await work()
      this.#readAtMs = begunAtMs
      this.#members = textOf(members)
      return result
    } catch (error) {
      this.#hasNews = true
      throw error
    }
  }

  /** The uplink of OVN networks, which an operator creates once. */
  async uplink(signal: AbortSignal): Promise<string | undefined> {
    if (!this.#uplink || performance.now() - this.#uplink.readAtMs > fullReadMs)
      this.#uplink = { name: await findUplink(this.#ctx, signal), readAtMs: performance.now() }
    return this.#uplink.name
  }

  /** Null if the member does not answer. */
  async resourcesOf(member: string | null, signal: AbortSignal): Promise<Resources | null> {
    const key = member ?? ''
    const known = this.#resources.get(key)
    if (known && performance.now() < known.untilMs) return known.resources
    const resources = await readResources(this.#ctx, member, signal).catch(() => null)
    const untilMs = performance.now() + (resources ? resourcesMs : silentMs)
    this.#resources.set(key, { resources, untilMs })
    return resources
  }

  /**
   * Probes members that Incus has shown as offline only for a short time. Returns the members with their real status. Omits a
   * member whose first probe takes too long: the cluster may be busy with the election of a leader.
   */
  async doubtOffline(members: Member[], signal: AbortSignal): Promise<Member[]> {
    const doubted = await Promise.all(members.map((member) => this.#doubt(member, signal)))
    return doubted.filter((member) => member !== null)
  }

  async #doubt(member: Member, signal: AbortSignal): Promise<Member | null> {
    const { name, status } = member
    if (status !== 'Offline') {
      this.#offline.delete(name)
      return member
    }
    const offline = this.#offline.get(name) ?? { sinceMs: performance.now(), isUnknown: false }
    this.#offline.set(name, offline)
    const isInDoubt = performance.now() - offline.sinceMs < doubtMs
    const answer = isInDoubt ? await this.#probe(name, signal) : 'no'
    if (answer === 'yes') return { ...member, status: 'Online' }
    if (answer === 'unknown' && !offline.isUnknown) {
      offline.isUnknown = true
      return null
    }
    // The member may come back with other hardware.
    this.#resources.delete(name)
    return member
  }

  /** Returns `no` if another member responds that it cannot reach this one. */
  #probe(member: string, signal: AbortSignal): Promise<'yes' | 'no' | 'unknown'> {
    const limit = AbortSignal.any([signal, AbortSignal.timeout(doubtedReadMs)])
    return readResources(this.#ctx, member, limit).then(
      () => 'yes',
      (error) => ([error, error.cause].some((one) => one instanceof IncusError) ? 'no' : 'unknown'),
    )
  }
}

/** Returns the part of the members that a report depends on, without messages, which contain times. */
const textOf = (members: Member[]) =>
  JSON.stringify(members.map(({ name, status, config }) => [name, status, config]))

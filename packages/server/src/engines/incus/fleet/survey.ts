import { EngineError } from '../../engine.ts'
import { IncusError } from '../client.ts'
import type { IncusContext } from '../context.ts'
import { findUplink } from '../networks.ts'
import type { Member } from './members.ts'
import { type Resources, readResources } from './resources.ts'

/** Events report changes. A full read at this interval covers events that were lost. */
const fullReadMs = 60_000
/** Hardware changes only with a reboot, after which the member has another status for a while. */
const resourcesMs = 600_000
/** With the other reads of an inventory, this is less than the time that an inventory has for one batch of hosts. */
const resourcesReadMs = 6_000
/** A member that did not answer is not asked again for this time, so that it does not delay the reports of other members. */
const silentMs = 10_000
/** Incus may show a member as offline only because the leader that counts its heartbeats was lost. */
const doubtMs = 60_000
/** The limit for members that may be lost. It is short, because the reports of other members wait for theirs. */
const doubtedReadMs = 2_000

/** What the last inventory read, and whether it can have changed since. */
export class Survey {
  readonly #ctx: IncusContext
  readonly #isFollowing: () => boolean
  readonly #resources = new Map<string, { resources: Resources | null; untilMs: number }>()
  /** The problems that the last full read found on each member, which an operator has to fix. */
  readonly problems = new Map<string, string[]>()
  readonly #offline = new Map<string, { sinceMs: number; wasLate: boolean }>()
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
    const wasSilent = known?.resources === null
    const timeout = AbortSignal.timeout(wasSilent ? doubtedReadMs : resourcesReadMs)
    const limit = AbortSignal.any([signal, timeout])
    const resources = await readResources(this.#ctx, member, limit).catch(() => null)
    const untilMs = performance.now() + (resources ? resourcesMs : silentMs)
    this.#resources.set(key, { resources, untilMs })
    return resources
  }

  /**
   * Probes members that Incus has shown as offline only for a short time, and returns all members with their real status. While
   * a cluster elects a leader, Incus can show healthy members as offline, and requests to them can take too long. So this fails
   * if most members do not answer, and the first time that a probe of a member takes too long.
   */
  async doubtOffline(members: Member[], signal: AbortSignal): Promise<Member[]> {
    const answers = await Promise.all(members.map((member) => this.#answerOf(member, signal)))
    const doubted = answers.filter((answer) => answer === 'no' || answer === 'late')
    if (answers.includes('first late') || doubted.length * 2 > members.length)
      throw new EngineError(
        'unavailable',
        'Incus shows members as offline, and requests to them take too long',
      )
    return members.map((member, index) => {
      if (answers[index] === 'yes') return { ...member, status: 'Online' }
      // An offline member may come back with other hardware.
      if (member.status === 'Offline') this.#resources.delete(member.name)
      return member
    })
  }

  /** A member is not doubted if it is not offline, or was offline for long. */
  async #answerOf(
    { name, status }: Member,
    signal: AbortSignal,
  ): Promise<'yes' | 'no' | 'late' | 'first late' | 'not doubted'> {
    if (status !== 'Offline') {
      this.#offline.delete(name)
      return 'not doubted'
    }
    const offline = this.#offline.get(name) ?? { sinceMs: performance.now(), wasLate: false }
    this.#offline.set(name, offline)
    const isInDoubt = performance.now() - offline.sinceMs < doubtMs
    const answer = isInDoubt ? await this.#probe(name, signal) : 'not doubted'
    if (answer !== 'late' || offline.wasLate) return answer
    offline.wasLate = true
    return 'first late'
  }

  /** Returns `no` if another member responds that it cannot reach this one. */
  #probe(member: string, signal: AbortSignal): Promise<'yes' | 'no' | 'late'> {
    const limit = AbortSignal.any([signal, AbortSignal.timeout(doubtedReadMs)])
    return readResources(this.#ctx, member, limit).then(
      () => 'yes',
      (error) => ([error, error.cause].some((one) => one instanceof IncusError) ? 'no' : 'late'),
    )
  }
}

/** Returns the part of the members that a report depends on, without messages, which contain times. */
const textOf = (members: Member[]) =>
  JSON.stringify(members.map(({ name, status, config }) => [name, status, config]))

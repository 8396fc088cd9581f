import { zeroUuid } from '../domain/ids.ts'
import type { HostReport } from '../engines/engine.ts'
import { applyDue, applyFirewalls } from '../operations/firewall/apply.ts'
import type { Services } from '../services.ts'
import { releaseAddresses } from '../store/network/addresses.ts'
import { claimOutdatedOnHosts, listOutdatedProjects } from '../store/network/firewall-queue.ts'

/** Projects of one location that are processed at the same time, each with one batch of VMs. */
const projectsAtOnce = 8
const projectsPerRead = 1_000
const returningVmsPerReport = 256

interface LocationQueue {
  location: string
  /** The projects that are being processed. */
  working: Map<string, Promise<void>>
  /** The next read begins after this project. */
  after: string
}

/**
 * Applies firewalls that are not up to date at their engine. Locations do not wait for each other, and
 * neither do projects: each project has its own slot, and projects take turns if there are not enough slots.
 */
export class Firewalls {
  readonly #services: Services
  readonly #queueOf = new Map<string, LocationQueue>()

  constructor(services: Services) {
    this.#services = services
  }

  /** Starts work that is due, while slots are free, without waiting for engines. */
  async begin(signal: AbortSignal): Promise<void> {
    for (const queue of this.#servedQueues()) await this.#begin(queue, signal)
    await releaseAddresses(this.#services.database)
  }

  /** Resolves when nothing more is due. */
  async finish(signal: AbortSignal): Promise<void> {
    do await this.whenIdle()
    while (
      (await Promise.all(this.#servedQueues().map((queue) => this.#begin(queue, signal)))).includes(true)
    )
    await releaseAddresses(this.#services.database)
  }

  /** Resolves when all work that was started has ended. */
  async whenIdle(): Promise<void> {
    const working = [...this.#queueOf.values()].flatMap((queue) => [...queue.working.values()])
    if (working.length === 0) return
    await Promise.all(working)
    return this.whenIdle()
  }

  /** Returns the queues of the locations that have an engine now. */
  #servedQueues(): LocationQueue[] {
    return [...this.#services.engines.keys()].map((location) => {
      const queue = this.#queueOf.get(location) ?? { location, working: new Map(), after: zeroUuid }
      this.#queueOf.set(location, queue)
      return queue
    })
  }

  /** Returns whether any work was started. */
  async #begin(queue: LocationQueue, signal: AbortSignal): Promise<boolean> {
    if (signal.aborted || queue.working.size >= projectsAtOnce) return false
    const { database } = this.#services
    const found = await listOutdatedProjects(database, queue.location, queue.after, projectsPerRead)
    const waiting = found.filter(({ project_id, is_due }) => is_due && !queue.working.has(project_id))
    const chosen = waiting.slice(0, Math.max(0, projectsAtOnce - queue.working.size))
    for (const { project_id } of chosen) this.#work(queue, project_id, signal)
    // The next read continues where this one ran out of slots or rows. After the last project, it starts
    // again with the first.
    const wasFromFirst = queue.after === zeroUuid
    const last = chosen.length < waiting.length ? chosen.at(-1) : found[projectsPerRead - 1]
    queue.after = last?.project_id ?? zeroUuid
    if (last || wasFromFirst) return chosen.length > 0
    return (await this.#begin(queue, signal)) || chosen.length > 0
  }

  #work(queue: LocationQueue, projectId: string, signal: AbortSignal): void {
    const { location, working } = queue
    const work = applyDue(this.#services, { location, projectId, networkId: null }, signal)
      .catch((err) => {
        if (!signal.aborted) this.#services.log.warn({ err, location }, 'firewalls not applied, will retry')
        return 0
      })
      .then(async (count) => {
        working.delete(projectId)
        // A slot is free: start the next project now instead of at the next read.
        if (count > 0) await this.#begin(queue, signal).catch(() => false)
      })
    working.set(projectId, work)
  }
}

/**
 * Applies the changed firewalls of VMs on a host that was down, before the host counts as up. In the
 * meantime, a rule may have become active, or an address may have moved to another VM. The host stays down
 * until a report shows that all these firewalls are applied.
 */
export async function protectReturningHosts(
  services: Services,
  location: string,
  reports: HostReport[],
  signal: AbortSignal,
): Promise<void> {
  const hosts = reports.map(({ name }) => name)
  const vms = await claimOutdatedOnHosts(services.database, location, hosts, returningVmsPerReport)
  await applyFirewalls(services, vms, signal)
}

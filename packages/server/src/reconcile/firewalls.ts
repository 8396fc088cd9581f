import type { HostReport } from '../engines/engine.ts'
import { applyDue, applyFirewalls } from '../operations/firewall/apply.ts'
import type { Services } from '../services.ts'
import { releaseAddresses } from '../store/network/addresses.ts'
import { claimBehindOnHosts, listProjectsBehind } from '../store/network/firewall-queue.ts'

/** In each location so many projects are worked for at once, each with one batch of VMs. */
const projectsAtOnce = 8
const projectsPerLook = 1_000
const returningVmsPerReport = 256
const firstProject = '00000000-0000-0000-0000-000000000000'

/** The line of one location: who is being worked for, and who comes next. */
interface Line {
  location: string
  working: Map<string, Promise<void>>
  after: string
}

/**
 * Brings firewalls that are behind up to date. Locations do not wait for each other, and neither do projects: each has a
 * place of its own, and when places are short they go round.
 */
export class Firewalls {
  readonly #services: Services
  readonly #lines: Line[]

  constructor(services: Services) {
    this.#services = services
    this.#lines = [...services.engines.keys()].map((location) => ({
      location,
      working: new Map(),
      after: firstProject,
    }))
  }

  /** Begins what is due, as far as there are places, without waiting for any engine. */
  async begin(signal: AbortSignal): Promise<void> {
    for (const line of this.#lines) await this.#begin(line, signal)
    await releaseAddresses(this.#services.database)
  }

  /** Until nothing more is due. */
  async finish(signal: AbortSignal): Promise<void> {
    do await this.idle()
    while ((await Promise.all(this.#lines.map((line) => this.#begin(line, signal)))).includes(true))
    await releaseAddresses(this.#services.database)
  }

  /** Until all that was begun has ended. */
  async idle(): Promise<void> {
    const working = this.#lines.flatMap((line) => [...line.working.values()])
    if (working.length === 0) return
    await Promise.all(working)
    return this.idle()
  }

  /** Returns whether anything was begun. */
  async #begin(line: Line, signal: AbortSignal): Promise<boolean> {
    if (signal.aborted || line.working.size >= projectsAtOnce) return false
    const { database } = this.#services
    const found = await listProjectsBehind(database, line.location, line.after, projectsPerLook)
    const waiting = found.filter(({ project_id, is_due }) => is_due && !line.working.has(project_id))
    const chosen = waiting.slice(0, Math.max(0, projectsAtOnce - line.working.size))
    for (const { project_id } of chosen) this.#work(line, project_id, signal)
    // The next look goes on where the places or this look ended; after the last project comes the first again.
    const wasFromFirst = line.after === firstProject
    const last = chosen.length < waiting.length ? chosen.at(-1) : found[projectsPerLook - 1]
    line.after = last?.project_id ?? firstProject
    if (last || wasFromFirst) return chosen.length > 0
    return (await this.#begin(line, signal)) || chosen.length > 0
  }

  #work(line: Line, projectId: string, signal: AbortSignal): void {
    const { location, working } = line
    const work = applyDue(this.#services, { location, projectId, networkId: null }, signal)
      .catch((err) => {
        if (!signal.aborted) this.#services.log.warn({ err, location }, 'firewalls not brought up to date')
        return 0
      })
      .then(async (count) => {
        working.delete(projectId)
        // A place is free again, and whoever waited for one should not wait for the next look as well.
        if (count > 0) await this.#begin(line, signal).catch(() => false)
      })
    working.set(projectId, work)
  }
}

/**
 * A host that was down is about to count as up: the VMs on it catch up first with what was changed meanwhile, since
 * others relied on it (a rule is active, an address is somebody else's). What is not done this time is done at the next
 * report, and until then the host stays down.
 */
export async function protectReturningHosts(
  services: Services,
  location: string,
  reports: HostReport[],
  signal: AbortSignal,
): Promise<void> {
  const hosts = reports.map(({ name }) => name)
  const vms = await claimBehindOnHosts(services.database, location, hosts, returningVmsPerReport)
  await applyFirewalls(services, vms, signal)
}

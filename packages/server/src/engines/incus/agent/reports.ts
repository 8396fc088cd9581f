import { setTimeout as sleep } from 'node:timers/promises'
import { EngineError } from '../../engine.ts'
import type { IncusContext } from '../context.ts'
import { isClustered, type ServerInfo } from '../fleet/members.ts'
import { type AgentReport, agentReportOf, type GuestNetwork, versionOf } from './guest-network.ts'

/** An agent applies a change in a fraction of a second; callers have a limit of ten seconds. */
const applyTimeoutMs = 8_000
const pollMs = 60

/** Reads the reports of the members' agents. Concurrent calls for the same member share a request. */
export class AgentReports {
  readonly #ctx: IncusContext
  readonly #inProgress = new Map<string, Promise<AgentReport | null>>()

  constructor(ctx: IncusContext) {
    this.#ctx = ctx
  }

  /** Returns null if the member has no agent. */
  of(member: string, signal: AbortSignal): Promise<AgentReport | null> {
    const known = this.#inProgress.get(member)
    if (known) return known
    const reading = this.#read(member, signal).finally(() => this.#inProgress.delete(member))
    this.#inProgress.set(member, reading)
    return reading
  }

  /** Resolves when the member's kernel has applied exactly this network. */
  async waitFor(guest: GuestNetwork, member: string, signal: AbortSignal): Promise<void> {
    const version = versionOf(guest)
    const untilMs = performance.now() + applyTimeoutMs
    do {
      // A shared request that began before this call may return an older report; the loop then reads again.
      const report = await this.of(member, signal)
      if (report?.applied[guest.vmId] === version) return
      await sleep(pollMs, undefined, { signal })
    } while (performance.now() < untilMs)
    throw new EngineError(
      'unavailable',
      `the agent of ${member} did not apply the network of ${guest.vmId}: run systemctl status slipway-agent on ${member}`,
    )
  }

  async #read(member: string, signal: AbortSignal): Promise<AgentReport | null> {
    const { client } = this.#ctx
    const path = (await isClustered(this.#ctx, signal))
      ? `/1.0/cluster/members/${encodeURIComponent(member)}`
      : '/1.0'
    const found = await client.find<Pick<ServerInfo, 'config'>>(path, { signal })
    return found ? agentReportOf(found.config) : null
  }
}

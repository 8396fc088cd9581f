import type { IncusConfig } from '../../../config/index.ts'
import { Agent } from '../agent/agent.ts'
import { withIncus } from '../context.ts'

/**
 * Runs the agent of this machine until SIGINT or SIGTERM. The packet filter and bridges remain after it
 * exits.
 */
export function runAgent(
  config: IncusConfig,
  project: string,
  stateDir: string,
  say: (line: string) => void,
): Promise<void> {
  const stopping = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => stopping.abort())
  return withIncus(config, project, (ctx) => new Agent(ctx, { stateDir, signal: stopping.signal, say }).run())
}

import type { HostReport } from '../engines/engine.ts'
import type { Services } from '../services.ts'
import { listCordonedHosts } from '../store/fleet/fleet.ts'

/**
 * Others who place guests on a host learn from its engine that an operator cordoned or drains it, and that it is open
 * again. What cannot be told now is told at a later look: no VM depends on it.
 */
export async function reconcileCordons(
  { database, engines, log }: Services,
  location: string,
  reports: HostReport[],
  signal: AbortSignal,
): Promise<void> {
  const tellable = reports.filter(({ isCordoned }) => isCordoned !== undefined)
  if (tellable.length === 0) return
  const names = tellable.map(({ name }) => name)
  const cordoned = await listCordonedHosts(database, location, names)
  const changed = tellable.filter(({ name, isCordoned }) => isCordoned !== cordoned.has(name))
  for (const { name } of changed)
    try {
      await engines.get(location)!.cordonHost(name, cordoned.has(name), signal)
    } catch (err) {
      signal.throwIfAborted()
      return log.warn({ err, location, host: name }, 'cordon not passed on')
    }
}

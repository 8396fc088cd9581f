import type { HostReport } from '../engines/engine.ts'
import type { Services } from '../services.ts'
import { listCordonedHosts } from '../store/fleet/fleet.ts'

/**
 * Makes engines cordon the hosts that an operator has cordoned or is draining, so that other software does
 * not place guests there. A failed call is not repeated until the next inspection, because no VM depends on
 * the cordon.
 */
export async function reconcileCordons(
  { database, engines, log }: Services,
  location: string,
  reports: HostReport[],
  signal: AbortSignal,
): Promise<void> {
  const supported = reports.filter(({ isCordoned }) => isCordoned !== undefined)
  if (supported.length === 0) return
  const names = supported.map(({ name }) => name)
  const cordoned = await listCordonedHosts(database, location, names)
  const changed = supported.filter(({ name, isCordoned }) => isCordoned !== cordoned.has(name))
  for (const { name } of changed)
    try {
      await engines.get(location)!.cordonHost(name, cordoned.has(name), signal)
    } catch (err) {
      signal.throwIfAborted()
      return log.warn({ err, location, host: name }, 'cordon not applied to the engine, will retry')
    }
}

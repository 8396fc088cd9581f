import type { Tx } from '../../postgres/database.ts'
import { countReplacements, isMassFault } from '../../store/fleet/gpu-health.ts'

const replacementsPerDay = 2

/**
 * Returns whether the service may replace the VM now: it replaces a VM at most twice a day, and none while the
 * faults in the location have a common cause.
 */
export const mayReplaceByPolicy = async (tx: Tx, vmId: string, location: string): Promise<boolean> =>
  (await countReplacements(tx, vmId)) < replacementsPerDay && !(await isMassFault(tx, location))

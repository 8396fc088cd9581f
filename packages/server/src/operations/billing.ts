import { pruneBillingSessions } from '../store/billing-sessions.ts'
import { pruneProviderEvents } from '../store/payments.ts'
import { checkBudgets } from './budgets.ts'
import { sendMeterReports } from './meter-reports.ts'
import type { Workshop } from './operation.ts'
import { expireCards } from './payments.ts'
import { rollUpUsage } from './usage-rollup.ts'

const tasks: Record<string, (workshop: Workshop) => Promise<unknown>> = {
  'usage roll-up': rollUpUsage,
  'card expiry': expireCards,
  budgets: checkBudgets,
  'meter reports': sendMeterReports,
  'billing sessions': ({ database }) => pruneBillingSessions(database),
  'provider events': ({ database }) => pruneProviderEvents(database),
}

/** Each is tried, whatever becomes of the others. */
export async function runBilling(workshop: Workshop): Promise<void> {
  for (const [name, run] of Object.entries(tasks))
    await run(workshop).catch((error) => workshop.log.warn({ err: error, task: name }, 'billing task failed'))
}

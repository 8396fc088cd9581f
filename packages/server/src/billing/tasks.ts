import { setTimeout as delay } from 'node:timers/promises'
import { PeriodicTasks } from '../runner/periodic.ts'
import { SharedTasks } from '../runner/shared-tasks.ts'
import type { Services } from '../services.ts'
import { checkBudgets } from './budgets.ts'
import { sendMeterReports } from './meter-reports.ts'
import { expireCards } from './payments.ts'
import { rollUpUsage } from './usage-rollup.ts'

const everyMs = 60_000
const rest = { factor: 9, longestMs: 600_000 }

const tasks: Record<string, (services: Services) => Promise<unknown>> = {
  'usage roll-up': rollUpUsage,
  'card expiry': expireCards,
  budgets: checkBudgets,
  'meter reports': sendMeterReports,
}

/** Rolls up usage, issues invoices, checks budgets and cards, and reports usage to the payment provider. */
export class BillingTasks {
  readonly #services: Services
  readonly #tasks: PeriodicTasks
  readonly #sharedTasks: SharedTasks

  constructor(services: Services) {
    this.#services = services
    this.#tasks = new PeriodicTasks((err) => services.log.warn({ err }, 'billing task failed'))
    this.#sharedTasks = new SharedTasks(services)
  }

  /** Processes share these tasks: each run is done by only one process. */
  start(): void {
    for (const [name, run] of Object.entries(tasks))
      this.#tasks.runOn(
        (call) => this.#services.due.on({ turn: name, everyMs }, call),
        () => this.#sharedTasks.runIfDue({ name, everyMs, rest }, () => run(this.#services)),
      )
  }

  async stop(): Promise<void> {
    await Promise.race([this.#tasks.stop(), delay(3_000)])
    await this.#sharedTasks.release().catch(() => {})
  }

  /** Runs every task once, even if one of them fails. For tests. */
  async once(): Promise<void> {
    for (const [name, run] of Object.entries(tasks))
      await run(this.#services).catch((err) =>
        this.#services.log.warn({ err, task: name }, 'billing task failed'),
      )
  }
}

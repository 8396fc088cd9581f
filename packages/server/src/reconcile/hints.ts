import type { Services } from '../services.ts'
import { makeOperationDue } from '../store/compute/operations.ts'
import { reconcileVm } from './vm-states.ts'

/** An engine that reconnects may report all its VMs together, so only this many are processed at a time. */
const hintsAtOnce = 8

/**
 * Processes engine events. If an operation on the VM is waiting, it continues immediately; otherwise
 * the VM is inspected, because it may have crashed.
 */
export class Hints {
  readonly #services: Services
  readonly #stopping: AbortSignal
  readonly #waiting = new Set<string>()
  #working = 0

  constructor(services: Services, stopping: AbortSignal) {
    this.#services = services
    this.#stopping = stopping
  }

  add(vmId: string): void {
    this.#waiting.add(vmId)
    if (this.#working < hintsAtOnce) void this.#work()
  }

  async #work(): Promise<void> {
    this.#working += 1
    for (const vmId of this.#waiting) {
      this.#waiting.delete(vmId)
      if (!this.#stopping.aborted) await this.#process(vmId)
    }
    this.#working -= 1
  }

  async #process(vmId: string): Promise<void> {
    const { database, signals, log } = this.#services
    try {
      if ((await makeOperationDue(database, vmId)) > 0) signals.wake('operations')
      else await reconcileVm(this.#services, vmId, this.#stopping)
    } catch (err) {
      if (!this.#stopping.aborted) log.warn({ err, vm: vmId }, 'engine event not processed')
    }
  }
}

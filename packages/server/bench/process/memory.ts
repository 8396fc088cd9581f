import { memoryMb } from '../cpu.ts'
import { atMost, type Figure } from '../figures.ts'
import type { RunningService } from '../running-service.ts'

/**
 * The memory metrics of a process in `/metrics`. The rest of the resident memory is code, stacks and memory
 * that malloc keeps.
 */
const parts = {
  resident: 'process_resident_memory_bytes',
  'heap used': 'nodejs_heap_size_used_bytes',
  heap: 'nodejs_heap_size_total_bytes',
  external: 'nodejs_external_memory_bytes',
}

/** The memory of the server process, without PostgreSQL's processes. */
export class Memory {
  readonly #service: RunningService
  readonly #noted: Record<string, number> = {}

  constructor(service: RunningService) {
    this.#service = service
  }

  /** Records the memory after a measurement, so that the figure shows which measurement needed how much. */
  async note(after: string): Promise<void> {
    const metrics = await (await fetch(`${this.#service.main.url}/metrics`)).text()
    for (const [part, name] of Object.entries(parts)) {
      const bytes = Number(new RegExp(`^${name} (\\S+)`, 'm').exec(metrics)![1])
      this.#noted[`after ${after}: ${part} MB`] = bytes / 2 ** 20
    }
  }

  /** The peak memory of the process under all load so far. */
  get figure(): Figure {
    const mb = memoryMb(this.#service.main.pid, 'most')
    return {
      id: 'memory',
      what: 'Peak memory of the server process under load',
      value: mb,
      unit: 'MB',
      aim: atMost(mb, 250, 'MB'),
      more: { 'MB now': memoryMb(this.#service.main.pid, 'now'), ...this.#noted },
    }
  }
}

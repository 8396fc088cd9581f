import { memoryMb } from '../cpu.ts'
import { atMost, type Figure } from '../figures.ts'
import type { RunningService } from '../running-service.ts'

/** The memory of a process in `/metrics`. The rest of what is resident is code, stacks and what malloc keeps. */
const parts = {
  resident: 'process_resident_memory_bytes',
  'heap used': 'nodejs_heap_size_used_bytes',
  heap: 'nodejs_heap_size_total_bytes',
  external: 'nodejs_external_memory_bytes',
}

/** The memory of the server process; PostgreSQL's processes are not in it. */
export class Memory {
  readonly #service: RunningService
  readonly #noted: Record<string, number> = {}

  constructor(service: RunningService) {
    this.#service = service
  }

  /** The figure shows which work used how much memory. */
  async note(after: string): Promise<void> {
    const metrics = await (await fetch(`${this.#service.main.url}/metrics`)).text()
    for (const [part, name] of Object.entries(parts)) {
      const bytes = Number(new RegExp(`^${name} (\\S+)`, 'm').exec(metrics)![1])
      this.#noted[`after ${after}: ${part} MB`] = bytes / 2 ** 20
    }
  }

  /** The most that the process had under all of the load before this. */
  get figure(): Figure {
    const mb = memoryMb(this.#service.main.pid, 'most')
    return {
      id: 'memory',
      what: 'Memory of the server process, the most under load',
      value: mb,
      unit: 'MB',
      aim: atMost(mb, 250, 'MB'),
      more: { 'MB now': memoryMb(this.#service.main.pid, 'now'), ...this.#noted },
    }
  }
}

import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** How much may gather beside what lives before it is collected, in percent of that. */
const growthPercent = 25

/**
 * Keeps a process near the memory that it needs. V8 allows a new heap hundreds of megabytes before it first collects what
 * outlived a few requests, and four times what lives from then on. Under load most of that is requests that have been
 * answered. There is no limit in this: a process that has more to keep may grow as ever.
 */
export function collectSoon(): void {
  setFlagsFromString(`--heap-growing-percent=${growthPercent}`)
  setFlagsFromString('--expose-gc')
  // The allowance of a new heap ends with its first collection.
  runInNewContext('gc')()
}

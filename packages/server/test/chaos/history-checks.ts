/** One request of a client and its response. Times are those of the client. */
export interface Exchange {
  startedMs: number
  endedMs: number
  /** The Idempotency-Key; '' for a read. */
  key: string
  /** 0 if there was no response. */
  status: number
  /** True if the client does not repeat the request. */
  isFinal: boolean
  /** The operation that the response is about, and its state. */
  operationId?: string
  state?: string
}

/** An operation as stored by the service at the end. */
export interface FinalOperation {
  id: string
  /** The Idempotency-Key of its request. */
  key: string
  state: string
}

/** A GPU and the VM that holds it at its engine. One statement reads all of them. */
export interface GpuSample {
  gpu: string
  vmId: string
}

/** Compares the responses to clients with the operations that exist at the end. Returns the violations. */
export function checkExchanges(exchanges: Exchange[], operations: FinalOperation[]): string[] {
  const violations: string[] = []
  const byId = new Map(operations.map((operation) => [operation.id, operation]))
  const keysWithOperation = new Set(operations.map(({ key }) => key))
  const acceptedAs = new Map<string, string>()
  for (const { key, status, operationId, isFinal } of exchanges) {
    if (key === '') continue
    if (status === 200 && operationId !== undefined) {
      const earlier = acceptedAs.get(key) ?? operationId
      acceptedAs.set(key, earlier)
      if (earlier !== operationId) violations.push(`${key} was accepted as ${earlier} and as ${operationId}`)
      const operation = byId.get(operationId)
      if (!operation) violations.push(`${key} was accepted as ${operationId}, which does not exist`)
      else if (operation.state === 'IN_PROGRESS')
        violations.push(`${key} was accepted as ${operationId}, which is unfinished`)
    } else if (isFinal && status >= 400 && keysWithOperation.has(key))
      violations.push(`${key} was refused with ${status}, but began an operation`)
  }
  return [...violations, ...checkStates(exchanges, byId)]
}

/** Checks that after a response has shown the end of an operation, every later request shows the same end. */
function checkStates(exchanges: Exchange[], operations: Map<string, FinalOperation>): string[] {
  const violations: string[] = []
  const endedSince = new Map<string, number>()
  for (const { operationId, state, endedMs } of exchanges) {
    if (operationId === undefined || state === undefined || state === 'IN_PROGRESS') continue
    endedSince.set(operationId, Math.min(endedSince.get(operationId) ?? endedMs, endedMs))
    const final = operations.get(operationId)?.state
    if (final !== state) violations.push(`${operationId} was shown as ${state} and is ${final}`)
  }
  for (const { operationId, state, startedMs } of exchanges)
    if (operationId !== undefined && state === 'IN_PROGRESS')
      if (startedMs > (endedSince.get(operationId) ?? Number.POSITIVE_INFINITY))
        violations.push(`${operationId} was shown as ended and then as in progress`)
  return violations
}

/** Checks that no GPU has two VMs in one sample. */
export function checkGpus(sample: GpuSample[]): string[] {
  const holders = new Map<string, string>()
  return sample.flatMap(({ gpu, vmId }) => {
    const other = holders.get(gpu)
    holders.set(gpu, vmId)
    return other === undefined ? [] : [`GPU ${gpu} is held by ${other} and ${vmId}`]
  })
}

/** Checks that a reader, which reconnects after each break, got every event once, in the order of positions. */
export function checkStream(expected: string[], streamed: string[]): string[] {
  const seen = new Set(streamed)
  const missing = expected.filter((id) => !seen.has(id))
  const violations: string[] = []
  if (missing.length > 0) violations.push(`the stream lacks ${missing.length} events: ${missing.slice(0, 5)}`)
  if (seen.size < streamed.length)
    violations.push(`the stream brought ${streamed.length - seen.size} events twice`)
  if (violations.length === 0 && streamed.join() !== expected.join()) {
    const at = expected.findIndex((id, index) => streamed[index] !== id)
    violations.push(`the stream is out of order at ${at}: ${expected[at]}, ${streamed[at]}`)
  }
  return violations
}

export interface Meter {
  product: string
  quantity: number
  fromMs: number
  /** Null while the meter is open. */
  toMs: number | null
}

const hourMs = 3_600_000

/** Integrates the meters of a month by product, at constant prices. */
export function integrate(
  meters: Meter[],
  usdPerHour: Map<string, number>,
  month: { startMs: number; nowMs: number },
): Map<string, number> {
  const usd = new Map<string, number>()
  for (const { product, quantity, fromMs, toMs } of meters) {
    const ms = Math.min(toMs ?? month.nowMs, month.nowMs) - Math.max(fromMs, month.startMs)
    const cost = (Math.max(0, ms) / hourMs) * quantity * (usdPerHour.get(product) ?? 0)
    usd.set(product, (usd.get(product) ?? 0) + cost)
  }
  return usd
}

import { type Call, EngineError, noSuchVm } from '../engine.ts'
import { isCode, unavailable } from './client.ts'
import type { IncusContext } from './context.ts'
import { closingChange } from './definition.ts'
import { saysNoTrafficControl } from './error-texts.ts'
import {
  changeExisting,
  changeInstance,
  findInstance,
  type Goal,
  goalOf,
  type Instance,
  instancePath,
  isOn,
  marks,
  nextStart,
  shouldStop,
} from './instances.ts'
import { limitsAdvice } from './traffic-control.ts'

/**
 * How long Incus waits for a guest to stop. It is short, because Incus rejects changes to the instance in the
 * meantime.
 */
const shutdownWaitS = 1
const freshMs = 2_000
const tickMs = 200

type PowerRequest =
  | { action: 'start' }
  | { action: 'stop'; timeout: number }
  | { action: 'stop' | 'restart'; force: true }

/**
 * Incus has no conditional start or stop, so the request must follow a conditional change of the instance
 * immediately. The change itself may take a long time; what counts is the time since its response. A process
 * that was paused in between does not send the request, and its caller repeats the whole call. A shutdown is
 * only requested; this function does not wait for its end.
 */
async function changePower(
  { client }: IncusContext,
  vmId: string,
  request: PowerRequest,
  check: Check,
  signal: AbortSignal,
): Promise<void> {
  if (check.isTooOld())
    throw new EngineError(
      'unavailable',
      `${vmId}: too much time passed between the check and the ${request.action}`,
    )
  const path = `${instancePath(vmId)}/state`
  const sent =
    'timeout' in request
      ? client.begin('PUT', path, request, { signal })
      : client.change('PUT', path, request, { signal, timeoutMs: 60_000 })
  await sent.catch((error) => {
    throw isCode(error, 404) ? noSuchVm(vmId) : unavailable(error)
  })
}

/** Runs a conditional change, and knows how long ago Incus responded to it. */
export class Check {
  #ranAtMs = performance.now()
  #wasPaused = false
  #respondedAtMs = 0

  /** Runs the change. A timer that is late by `freshMs` shows that this process was paused. */
  static async of<T>(change: () => Promise<T>): Promise<{ result: T; check: Check }> {
    const check = new Check()
    const timer = setInterval(() => check.#tick(), tickMs)
    try {
      const result = await change()
      check.#tick()
      check.#respondedAtMs = performance.now()
      return { result, check }
    } finally {
      clearInterval(timer)
    }
  }

  isTooOld = () => this.#wasPaused || performance.now() - this.#respondedAtMs > freshMs

  #tick(): void {
    const nowMs = performance.now()
    this.#wasPaused ||= nowMs - this.#ranAtMs > freshMs
    this.#ranAtMs = nowMs
  }
}

/** Starts the instance. `check` is from the change that opened the gate. */
export async function start(ctx: IncusContext, vmId: string, check: Check, call: Call): Promise<void> {
  await changePower(ctx, vmId, { action: 'start' }, check, call.signal).catch(async (error) => {
    // If two processes start the instance, one gets an error. If the instance never ran, the next call starts it again.
    const now = await changeInstance(ctx, vmId, call, (seen) => (isOn(seen) ? null : { isFresh: true }))
    // Incus removes an instance if its creation did not finish. The next call creates it again.
    if (!now) throw removedDuringCreation(vmId)
    if (isOn(now)) return
    if (saysNoTrafficControl(error))
      throw new EngineError(
        'rejected',
        `${now.location} cannot limit the bandwidth of VMs: ${limitsAdvice}`,
        { cause: error },
      )
    // The instance exists, so Incus has lost the operation that starts it.
    if (error.kind === 'missing')
      throw new EngineError('unavailable', `Incus no longer has the operation that starts ${vmId}`)
    throw error
  })
}

export const removedDuringCreation = (vmId: string) =>
  new EngineError('unavailable', `${vmId} was removed during its creation`)

const goal = (value: Goal) => ({ config: { [marks.goal]: value } })

/** The goal `asked` is written after the request, so that a lost request is sent again. */
export async function shutDown(ctx: IncusContext, vmId: string, call: Call): Promise<void> {
  let isRequestNeeded = false
  const { check } = await Check.of(() =>
    changeExisting(ctx, vmId, call, (now) => {
      isRequestNeeded = isOn(now) && goalOf(now) !== 'asked'
      return isRequestNeeded && goalOf(now) !== 'stopping' ? goal('stopping') : null
    }),
  )
  if (!isRequestNeeded) return
  await changePower(ctx, vmId, { action: 'stop', timeout: shutdownWaitS }, check, call.signal)
  await changeInstance(ctx, vmId, call, (now) =>
    isOn(now) && goalOf(now) === 'stopping' ? goal('asked') : null,
  )
}

export async function powerOff(ctx: IncusContext, vmId: string, call: Call): Promise<void> {
  const { result: instance, check } = await Check.of(() =>
    changeExisting(ctx, vmId, call, (now) => {
      if (!isOn(now)) return closingChange(now)
      return shouldStop(now) ? null : goal('stopping')
    }),
  )
  if (!isOn(instance)) return
  const request = { action: 'stop', force: true } as const
  await changePower(ctx, vmId, request, check, call.signal).catch(async (error) => {
    const now = await findInstance(ctx, vmId, call.signal)
    if (now && isOn(now)) throw error
  })
  await changeInstance(ctx, vmId, call, (now) => (isOn(now) ? null : closingChange(now)))
}

/**
 * The generation is written after the reset, so that the reset is repeated if the process dies in between.
 */
export async function reset(ctx: IncusContext, vmId: string, call: Call): Promise<void> {
  const generation = String(call.generation)
  const isDone = ({ config }: Instance) => config[marks.reset] === generation
  const { result: instance, check } = await Check.of(() =>
    changeExisting(ctx, vmId, call, (now) => {
      if (isDone(now)) return null
      if (!isOn(now) && goalOf(now) !== 'on') throw new EngineError('rejected', `${vmId} is off`)
      return { config: { [marks.goal]: 'on', ...nextStart(now) } }
    }),
  )
  if (isDone(instance)) return
  const request: PowerRequest = isOn(instance) ? { action: 'restart', force: true } : { action: 'start' }
  await changePower(ctx, vmId, request, check, call.signal)
  await changeInstance(ctx, vmId, call, () => ({ config: { [marks.reset]: generation } }))
}

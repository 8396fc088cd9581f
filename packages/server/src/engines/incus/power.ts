import { type Call, EngineError, noSuchVm } from '../engine.ts'
import { isCode, unavailable } from './client.ts'
import type { IncusContext } from './context.ts'
import { closed } from './definition.ts'
import {
  changeExisting,
  changeInstance,
  findInstance,
  goalOf,
  type Instance,
  instancePath,
  isOn,
  marks,
  nextStart,
} from './instances.ts'

/** Incus allows no change of an instance while it waits for the guest to stop, so it waits only this long. */
const shutdownWaitS = 1
const freshMs = 2_000

type PowerRequest =
  | { action: 'start' }
  | { action: 'stop'; timeout: number }
  | { action: 'stop' | 'restart'; force: true }

/**
 * Incus has no conditional start or stop, so the request must follow a conditional change of the instance at once. A process
 * that paused in between sends no request, and its caller repeats the whole call. A shutdown is not awaited.
 */
async function changePower(
  { client }: IncusContext,
  vmId: string,
  request: PowerRequest,
  checkedAtMs: number,
  signal: AbortSignal,
): Promise<void> {
  if (performance.now() - checkedAtMs > freshMs)
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

/** `checkedAtMs` is the time before the change that opened the gate. */
export async function start(ctx: IncusContext, vmId: string, checkedAtMs: number, call: Call): Promise<void> {
  await changePower(ctx, vmId, { action: 'start' }, checkedAtMs, call.signal).catch(async (error) => {
    // If two processes start the instance, one gets an error. If it never ran, the next call starts it again.
    const now = await changeInstance(ctx, vmId, call, (seen) => (isOn(seen) ? null : { isFresh: true }))
    // Incus removes an instance whose creation did not finish; the next call creates it again.
    if (!now) throw vanished(vmId)
    if (isOn(now)) return
    // The instance exists, so it is the start operation that Incus no longer has.
    throw error.kind === 'missing' ? new EngineError('unavailable', `the start of ${vmId} was lost`) : error
  })
}

export const vanished = (vmId: string) =>
  new EngineError('unavailable', `${vmId} was removed during its creation`)

const stopping = { config: { [marks.goal]: 'stopping' } }

export async function shutDown(ctx: IncusContext, vmId: string, call: Call): Promise<void> {
  const checkedAtMs = performance.now()
  let isRequested = false
  await changeExisting(ctx, vmId, call, (now) => {
    isRequested = isOn(now) && goalOf(now) !== 'stopping'
    return isRequested ? stopping : null
  })
  if (isRequested)
    await changePower(ctx, vmId, { action: 'stop', timeout: shutdownWaitS }, checkedAtMs, call.signal)
}

export async function powerOff(ctx: IncusContext, vmId: string, call: Call): Promise<void> {
  const checkedAtMs = performance.now()
  const instance = await changeExisting(ctx, vmId, call, (now) => {
    if (!isOn(now)) return closed(now)
    return goalOf(now) === 'stopping' ? null : stopping
  })
  if (!isOn(instance)) return
  const request = { action: 'stop', force: true } as const
  await changePower(ctx, vmId, request, checkedAtMs, call.signal).catch(async (error) => {
    const now = await findInstance(ctx, vmId, call.signal)
    if (now && isOn(now)) throw error
  })
  await changeInstance(ctx, vmId, call, (now) => (isOn(now) ? null : closed(now)))
}

/** The generation is written after the reset, so that a process that died in between repeats it. */
export async function reset(ctx: IncusContext, vmId: string, call: Call): Promise<void> {
  const checkedAtMs = performance.now()
  const generation = String(call.generation)
  const isDone = ({ config }: Instance) => config[marks.reset] === generation
  const instance = await changeExisting(ctx, vmId, call, (now) => {
    if (isDone(now)) return null
    if (!isOn(now) && goalOf(now) !== 'on') throw new EngineError('rejected', `${vmId} is off`)
    return { config: { [marks.goal]: 'on', ...nextStart(now) } }
  })
  if (isDone(instance)) return
  const request: PowerRequest = isOn(instance) ? { action: 'restart', force: true } : { action: 'start' }
  await changePower(ctx, vmId, request, checkedAtMs, call.signal)
  await changeInstance(ctx, vmId, call, () => ({ config: { [marks.reset]: generation } }))
}

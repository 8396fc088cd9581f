import { setTimeout as sleep } from 'node:timers/promises'
import { EngineError } from '../engine.ts'
import { type CallOptions, isCode } from './client.ts'
import type { IncusContext } from './context.ts'

/** Our keys in an instance's configuration. */
export const marks = {
  id: 'user.slipway.id',
  /** The highest generation seen. */
  generation: 'user.slipway.generation',
  /** What it is to be: see `Goal`. */
  goal: 'user.slipway.goal',
  /** The generation that reset it last. */
  reset: 'user.slipway.reset',
  /** PCI addresses of its GPUs, with a space between. */
  gpus: 'user.slipway.gpus',
  bridge: 'user.slipway.bridge',
  publicAddress: 'user.slipway.public-address',
  /** How often it was started, less one. */
  restarts: 'user.slipway.restarts',
  /** What the guest is told from its second boot on; '' where that is what it is told already. */
  laterUserData: 'user.slipway.later-user-data',
} as const

/** `shut` means off with the gate closed; while it is `stopping`, its end is awaited. */
export type Goal = 'shut' | 'on' | 'stopping'

export interface Instance {
  name: string
  location: string
  status: string
  last_used_at: string
  architecture: string
  description: string
  ephemeral: boolean
  stateful: boolean
  profiles: string[]
  config: Record<string, string>
  devices: Record<string, Record<string, string>>
}

/** A device that no host has: while an instance has it, every start of it fails. Of USB, which VMs and containers take. */
export const gate = {
  gate: { type: 'usb', vendorid: '0000', productid: '0000', serial: 'slipway-gate', required: 'true' },
}

/** The daemon writes it at start and end; without it, the instance was not started since the gate was opened. */
const lastPower = 'volatile.last_state.power'
const changesTried = 40
const busyMs = 100

export const instanceName = (vmId: string) => `vm-${vmId}`
export const vmIdOf = (name: string) => (name.startsWith('vm-') ? name.slice(3) : null)
const pathOf = (vmId: string) => `/1.0/instances/${instanceName(vmId)}`

export const generationOf = ({ config }: Pick<Instance, 'config'>) => Number(config[marks.generation] ?? 0)
export const goalOf = ({ config }: Instance) => (config[marks.goal] ?? 'shut') as Goal
/** One in `Error` may run for all that Incus knows: its member does not answer, or its QEMU is halted. */
export const isOn = ({ status }: Instance) => status !== 'Stopped'
export const volumeName = (diskId: string) => `disk-${diskId}`
const diskIdOf = ({ source = '' }: Record<string, string>) =>
  source.startsWith('disk-') ? source.slice(5) : undefined
export const diskIdsOf = ({ devices }: Instance) =>
  Object.values(devices).flatMap((device) => diskIdOf(device) ?? [])
/** The device by which it has a disk. */
export const deviceOfDisk = ({ devices }: Instance, diskId: string) =>
  Object.keys(devices).find((name) => diskIdOf(devices[name]!) === diskId)
/** To be written before it is started. */
export const nextStart = ({ config }: Instance) => ({
  [marks.restarts]: String(Number(config[marks.restarts] ?? -1) + 1),
})
/** It ran after the gate was opened, and no longer does. */
export const hasDied = (instance: Instance) =>
  instance.status === 'Stopped' && goalOf(instance) === 'on' && lastPower in instance.config

export type Found = { instance: Instance; etag: string }

export async function findInstance(
  ctx: IncusContext,
  vmId: string,
  signal: AbortSignal,
): Promise<Found | undefined> {
  const found = await ctx.client.find<Instance>(pathOf(vmId), { signal })
  return found && { instance: found.value, etag: found.etag }
}

export interface Change {
  profiles?: string[]
  config?: Record<string, string>
  /** Null takes a device away. */
  devices?: Record<string, Record<string, string> | null>
  /** Forgets whether it ever ran: it is about to start. */
  isFresh?: boolean
}

/**
 * The one compare-and-swap that Incus has: what this changes is written only if nobody changed the instance since it was
 * read, together with the call's generation; `decide` is asked anew after every conflict and returns null where there is
 * nothing to change. Returns the instance as it then is; undefined where there is none. An older generation is `stale`.
 */
export async function changeInstance(
  ctx: IncusContext,
  vmId: string,
  call: { generation: number; signal: AbortSignal },
  decide: (instance: Instance) => Change | null,
): Promise<Instance | undefined> {
  for (let tries = 0; tries < changesTried; tries++) {
    const found = await findInstance(ctx, vmId, call.signal)
    if (!found) return undefined
    const { instance, etag } = found
    if (generationOf(instance) > call.generation)
      throw new EngineError(
        'stale',
        `${vmId}: generation ${call.generation} comes after ${generationOf(instance)}`,
      )
    const change = decide(instance)
    if (!change && generationOf(instance) === call.generation) return instance
    const written = merged(instance, {
      ...change,
      config: { ...change?.config, ...generationMark(call.generation) },
    })
    try {
      await ctx.client.change('PUT', pathOf(vmId), written, { signal: call.signal, ifMatch: etag })
      return { ...instance, ...written }
    } catch (error) {
      if (isCode(error, 404)) return undefined
      // While it starts or stops, Incus lets nobody change it.
      const isBusy = /is busy running/.test((error as Error).message)
      if (!isBusy && !isCode(error, 412)) throw unavailable(error)
      if (isBusy) await sleep(busyMs, undefined, { signal: call.signal })
    }
  }
  throw new EngineError('unavailable', `${vmId} was changed by others ${changesTried} times in a row`)
}

export const generationMark = (generation: number) => ({ [marks.generation]: String(generation) })

function merged(instance: Instance, { profiles = instance.profiles, config, devices = {}, isFresh }: Change) {
  const { architecture, description, ephemeral, stateful } = instance
  const kept = Object.entries({ ...instance.devices, ...devices }).filter(([, device]) => device !== null)
  const { [lastPower]: power, ...others } = instance.config
  return {
    ...{ architecture, description, ephemeral, stateful, profiles },
    config: { ...others, ...(power !== undefined && !isFresh && { [lastPower]: power }), ...config },
    devices: Object.fromEntries(kept) as Instance['devices'],
  }
}

/**
 * Incus has no "start if": what is asked here is done whatever the instance has become. So it must follow a conditional
 * change at once; a process that slept in between asks nothing and does it all again.
 */
export async function changePower(
  ctx: IncusContext,
  vmId: string,
  body: { action: 'start' | 'stop' | 'restart'; force?: boolean; timeout?: number },
  checkedAtMs: number,
  options: CallOptions & { isAwaited: boolean },
): Promise<void> {
  if (performance.now() - checkedAtMs > freshMs)
    throw new EngineError(
      'unavailable',
      `${vmId}: too much time passed between its check and its ${body.action}`,
    )
  const path = `${pathOf(vmId)}/state`
  const send = options.isAwaited
    ? ctx.client.change('PUT', path, body, options)
    : ctx.client.begin('PUT', path, body, options)
  await send.catch((error) => {
    throw isCode(error, 404) ? new EngineError('missing', `no such VM: ${vmId}`) : unavailable(error)
  })
}

const freshMs = 2_000

export async function createInstance(
  ctx: IncusContext,
  body: Record<string, unknown>,
  host: string | null,
  signal: AbortSignal,
): Promise<void> {
  await ctx.client
    .change('POST', '/1.0/instances', body, {
      signal,
      timeoutMs: 60_000,
      ...(host && { query: { target: host } }),
    })
    .catch((error) => {
      // Of several that make one at the same time, one does.
      if (isCode(error, 409) || /already exists/i.test(String((error as Error).message))) return
      if (isCode(error, 404)) throw new EngineError('missing', error.message, { cause: error })
      if (isCode(error, 400) && !error.isOperation)
        throw new EngineError('rejected', error.message, { cause: error })
      throw unavailable(error)
    })
}

export async function deleteInstance(ctx: IncusContext, vmId: string, signal: AbortSignal): Promise<void> {
  await ctx.client.change('DELETE', pathOf(vmId), undefined, { signal, timeoutMs: 60_000 }).catch((error) => {
    if (!isCode(error, 404)) throw unavailable(error)
  })
}

export const listInstances = (ctx: IncusContext, signal: AbortSignal) =>
  ctx.client.get<Instance[]>('/1.0/instances', { signal, timeoutMs: 60_000, query: { recursion: '1' } })

/** Without anything else of them, which costs next to nothing. */
export const listNames = async (ctx: IncusContext, signal: AbortSignal): Promise<string[]> =>
  (await ctx.client.get<string[]>('/1.0/instances', { signal })).map(
    (path) => path.split('?')[0]!.split('/').at(-1)!,
  )

/** Incus refuses for many reasons that pass: busy, a member away, a database without a leader. */
export function unavailable(error: unknown): Error {
  if (error instanceof EngineError || !(error instanceof Error)) return error as Error
  return new EngineError('unavailable', `Incus: ${error.message}`, { cause: error })
}

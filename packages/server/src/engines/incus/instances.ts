import { setTimeout as sleep } from 'node:timers/promises'
import { type Call, EngineError, noSuchVm, staleCall } from '../engine.ts'
import { isCode, unavailable } from './client.ts'
import type { IncusContext } from './context.ts'
import { saysBusy } from './error-texts.ts'

/** Our keys in an instance's configuration. */
export const marks = {
  id: 'user.slipway.id',
  /** The highest generation seen. */
  generation: 'user.slipway.generation',
  /** The wanted state, a `Goal`. */
  goal: 'user.slipway.goal',
  /** The generation of the last reset. */
  reset: 'user.slipway.reset',
  /** PCI addresses of the instance's GPUs, separated by spaces. */
  gpus: 'user.slipway.gpus',
  /** Ids of the instance's data disks, separated by spaces. */
  disks: 'user.slipway.disks',
  bridge: 'user.slipway.bridge',
  publicAddress: 'user.slipway.public-address',
  /** The number of starts after the first. */
  restarts: 'user.slipway.restarts',
  /** The user data for later boots, without secrets; '' once the instance uses it. */
  laterUserData: 'user.slipway.later-user-data',
} as const

/**
 * `shut` means off with the gate closed. `stopping` means that the instance has to stop but has not stopped
 * yet. `asked` means the same, but Incus has already accepted the request to shut down the guest.
 */
export type Goal = 'shut' | 'on' | 'stopping' | 'asked'

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

/**
 * A device that no host has, so an instance that has this device cannot start. Both VMs and containers accept
 * USB devices.
 */
export const gate = {
  gate: { type: 'usb', vendorid: '0000', productid: '0000', serial: 'slipway-gate', required: 'true' },
}

/**
 * Written by Incus at start and stop. If it is missing, the instance has not been started since the gate was
 * opened.
 */
const lastPower = 'volatile.last_state.power'
const maxAttempts = 40
const busyMs = 100

export const instanceName = (vmId: string) => `vm-${vmId}`
export const vmIdOf = (name: string) => (name.startsWith('vm-') ? name.slice(3) : null)
export const instancePath = (vmId: string) => `/1.0/instances/${instanceName(vmId)}`

export const generationOf = ({ config }: Pick<Instance, 'config'>) => Number(config[marks.generation] ?? 0)
export const goalOf = ({ config }: Instance) => (config[marks.goal] ?? 'shut') as Goal
export const shouldStop = (instance: Instance) => ['stopping', 'asked'].includes(goalOf(instance))
/**
 * An instance with the status `Error` may be running: its cluster member does not respond, or its QEMU is
 * halted.
 */
export const isOn = ({ status }: Instance) => status !== 'Stopped'
export const volumeName = (diskId: string) => `disk-${diskId}`
const diskIdOf = ({ source = '' }: Record<string, string>) =>
  source.startsWith('disk-') ? source.slice(5) : undefined
export const diskIdsOf = ({ devices }: Instance) =>
  Object.values(devices).flatMap((device) => diskIdOf(device) ?? [])
const withDisks = (ids: string[]) => ({ [marks.disks]: ids.join(' ') })
export const withDisk = (instance: Instance, id: string) =>
  withDisks([...new Set([...diskIdsOf(instance), id])])
export const withoutDisk = (instance: Instance, id: string) =>
  withDisks(diskIdsOf(instance).filter((one) => one !== id))
export const deviceOfDisk = ({ devices }: Instance, diskId: string) =>
  Object.keys(devices).find((name) => diskIdOf(devices[name]!) === diskId)
/** Returns the configuration that is written before each start. */
export const nextStart = ({ config }: Instance) => ({
  [marks.restarts]: String(Number(config[marks.restarts] ?? -1) + 1),
})
/** Returns whether the instance ran after the gate was opened, and then stopped unexpectedly. */
export const hasCrashed = (instance: Instance) =>
  instance.status === 'Stopped' && goalOf(instance) === 'on' && lastPower in instance.config

export const findInstance = (ctx: IncusContext, vmId: string, signal: AbortSignal) =>
  ctx.client.find<Instance>(instancePath(vmId), { signal })

export async function requireInstance(
  ctx: IncusContext,
  vmId: string,
  signal: AbortSignal,
): Promise<Instance> {
  const instance = await findInstance(ctx, vmId, signal)
  if (!instance) throw noSuchVm(vmId)
  return instance
}

export interface Change {
  profiles?: string[]
  config?: Record<string, string>
  /** Null removes a device. */
  devices?: Record<string, Record<string, string> | null>
  /** If true, Incus's record of the last run is cleared, as needed before a start. */
  isFresh?: boolean
}

/**
 * The only compare-and-swap that Incus has: writes the change together with the call's generation, if the
 * instance has not changed since it was read. `decide` is called again after every conflict, and returns null
 * if nothing has to change. Returns the instance as written, or undefined if it does not exist. Throws
 * `stale` if the instance has a newer generation.
 */
export async function changeInstance(
  ctx: IncusContext,
  vmId: string,
  { generation, signal }: Call,
  decide: (instance: Instance) => Change | null = () => null,
): Promise<Instance | undefined> {
  for (let attempt = 0; attempt < maxAttempts; attempt++) {
    const found = await ctx.client.findTagged<Instance>(instancePath(vmId), { signal })
    if (!found) return undefined
    const { value: instance, etag } = found
    const newest = generationOf(instance)
    if (newest > generation) throw staleCall(vmId, generation, newest)
    const change = decide(instance)
    if (!change && newest === generation) return instance
    const config = { ...change?.config, ...generationMark(generation) }
    const written = merge(instance, { ...change, config })
    try {
      await ctx.client.change('PUT', instancePath(vmId), written, { signal, ifMatch: etag })
      return { ...instance, ...written }
    } catch (error) {
      if (isCode(error, 404)) return undefined
      const isBusy = saysBusy(error)
      if (!isBusy && !isCode(error, 412)) throw unavailable(error)
      if (isBusy) await sleep(busyMs, undefined, { signal })
    }
  }
  throw new EngineError(
    'unavailable',
    `${vmId} could not be changed in ${maxAttempts} attempts: other processes changed it, or Incus was busy with it`,
  )
}

/** Changes an instance that must exist. */
export async function changeExisting(...args: Parameters<typeof changeInstance>): Promise<Instance> {
  const instance = await changeInstance(...args)
  if (!instance) throw noSuchVm(args[1])
  return instance
}

export const generationMark = (generation: number) => ({ [marks.generation]: String(generation) })

function merge(instance: Instance, { profiles = instance.profiles, config, devices = {}, isFresh }: Change) {
  const { architecture, description, ephemeral, stateful } = instance
  const kept = Object.entries({ ...instance.devices, ...devices }).filter(([, device]) => device !== null)
  const { [lastPower]: power, ...others } = instance.config
  return {
    ...{ architecture, description, ephemeral, stateful, profiles },
    config: { ...others, ...(power !== undefined && !isFresh && { [lastPower]: power }), ...config },
    devices: Object.fromEntries(kept) as Instance['devices'],
  }
}

export const deleteInstance = (ctx: IncusContext, vmId: string, signal: AbortSignal) =>
  ctx.client.remove(instancePath(vmId), { signal, timeoutMs: 60_000 })

/**
 * Incus queries every cluster member. Instances of a member that does not respond have the status `Error` and
 * no configuration. If a member hangs, Incus takes half a minute, but this call times out much earlier.
 */
export const listInstances = (ctx: IncusContext, signal: AbortSignal) =>
  ctx.client.get<Instance[]>('/1.0/instances', { signal, query: { recursion: '1' } })

/** Lists only the names, which is cheap for Incus. */
export const listNames = async (ctx: IncusContext, signal: AbortSignal): Promise<string[]> =>
  (await ctx.client.get<string[]>('/1.0/instances', { signal })).map(
    (path) => path.split('?')[0]!.split('/').at(-1)!,
  )

import { type Call, EngineError, osDiskLost, type VmSpec, type WantedState } from '../engine.ts'
import type { InOrder } from '../in-order.ts'
import { type GuestNetwork, guestNetworkKey } from './agent/guest-network.ts'
import { isLocalBridge, type LocalNetworks, withVxlanReservation } from './agent/local-networks.ts'
import { isCode, isDuplicate, unavailable } from './client.ts'
import type { IncusContext } from './context.ts'
import { type Definition, definitionOf } from './definition.ts'
import { targetOptions } from './fleet/members.ts'
import { changeInstance, deleteInstance, generationMark, type Instance, instanceName } from './instances.ts'
import { ensureNetwork, hasNetwork } from './networks.ts'
import { requireNotRemoved } from './removals.ts'
import type { Disks } from './storage/disks.ts'
import { imageOf } from './storage/images.ts'

/** Returns the VM's instance, and creates it if it does not exist. */
export async function ensureInstance(
  ctx: IncusContext,
  disks: Disks,
  networks: { creations: InOrder; locals: LocalNetworks },
  spec: VmSpec,
  firewall: WantedState['firewall'],
  call: Call,
): Promise<Instance> {
  const { id } = spec
  const known = await changeInstance(ctx, id, call)
  if (known) return known
  await requireNotRemoved(ctx, id, call)
  if (!spec.isNew) throw osDiskLost(id)
  const { creations, locals } = networks
  const bridge = await ensureNetwork(ctx, locals, creations, spec, call.signal)
  const guest = isLocalBridge(bridge) ? await locals.guestOf(spec, firewall, call.signal) : null
  const pools = await disks.placeAll(spec, call)
  const definition = definitionOf(ctx, spec, bridge, 'shut', [], pools)
  await create(ctx, spec, bridge, guest, definition, call).catch(async (error) => {
    if (guest) await locals.requireNumber(guest, call.signal)
    throw error
  })
  // A concurrent removal may have looked for the instance before it existed.
  await requireNotRemoved(ctx, id, call).catch(async (error) => {
    await deleteInstance(ctx, id, call.signal)
    throw error
  })
  const created = await changeInstance(ctx, id, call)
  if (!created) throw new EngineError('unavailable', `${id} does not exist after it was created`)
  return created
}

async function create(
  ctx: IncusContext,
  spec: VmSpec,
  bridge: string,
  guest: GuestNetwork | null,
  definition: Definition,
  call: Call,
): Promise<void> {
  const { signal } = call
  const body = {
    name: instanceName(spec.id),
    type: ctx.config.instanceType,
    source: imageOf(ctx, spec.image),
    ...definition,
    ...(guest && { profiles: withVxlanReservation(definition.profiles, guest) }),
    config: {
      ...definition.config,
      ...generationMark(call.generation),
      ...(guest && { [guestNetworkKey]: JSON.stringify(guest) }),
    },
  }
  const options = { ...(await targetOptions(ctx, spec.host, signal)), timeoutMs: 60_000 }
  await ctx.client.change('POST', '/1.0/instances', body, options).catch(async (error) => {
    // Another process created the instance at the same time.
    if (isDuplicate(error)) return
    // The network may have been removed with its last VM.
    if (!guest && !(await hasNetwork(ctx, bridge, signal)))
      throw new EngineError('unavailable', `the network of ${spec.id} was removed during the VM's creation`, {
        cause: error,
      })
    if (isCode(error, 404) || !(await hasImage(ctx, body.source, signal)))
      throw new EngineError('missing', `image ${spec.image.name} does not exist`, { cause: error })
    if (isCode(error, 400) && !error.isOperation)
      throw new EngineError('rejected', error.message, { cause: error })
    throw unavailable(error)
  })
}

/**
 * Returns whether the image exists: Incus reports a missing image in several ways. An alias, from which only
 * test containers are created, is not checked.
 */
const hasImage = async (ctx: IncusContext, { fingerprint }: Record<string, string>, signal: AbortSignal) =>
  fingerprint === undefined || (await ctx.client.find(`/1.0/images/${fingerprint}`, { signal })) !== undefined

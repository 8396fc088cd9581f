import type { Gpu, Host } from '@slipway/sdk'

/** A host that is up can be cordoned, which the API shows as not schedulable. */
export const hostState = ({ state, schedulable }: { state: string; schedulable: boolean }): string =>
  state === 'up' && !schedulable ? 'cordoned' : state

/** Returns whether a host accepts new VMs. */
export const acceptsVms = (host: { state: string; schedulable: boolean }): boolean => hostState(host) === 'up'

/** An unused GPU is `unavailable` if its host accepts no VMs. */
export const gpuState = ({ state }: Gpu, host: Host): Gpu['state'] | 'unavailable' =>
  state === 'free' && !acceptsVms(host) ? 'unavailable' : state

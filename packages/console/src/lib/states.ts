import type { Gpu, Host } from '@slipway/sdk'

export type Tone = 'good' | 'busy' | 'idle' | 'used' | 'warn' | 'bad'

/** The tone and the text of each state. */
export const stateStyles: Record<string, [Tone, string]> = {
  STATE_RUNNING: ['good', 'running'],
  STATE_CREATING: ['busy', 'creating'],
  STATE_STARTING: ['busy', 'starting'],
  STATE_STOPPING: ['busy', 'stopping'],
  STATE_RESETTING: ['busy', 'resetting'],
  STATE_DELETING: ['busy', 'deleting'],
  STATE_SHUTOFF: ['idle', 'stopped'],
  STATE_UNREACHABLE: ['warn', 'unreachable'],
  STATE_CRASHED: ['bad', 'crashed'],
  HEALTHY: ['good', 'healthy'],
  UPDATING: ['busy', 'updating'],
  UNHEALTHY: ['bad', 'unhealthy'],
  DELETING: ['busy', 'deleting'],
  IN_PROGRESS: ['busy', 'in progress'],
  SUCCEEDED: ['good', 'succeeded'],
  FAILED: ['bad', 'failed'],
  creating: ['busy', 'creating'],
  updating: ['busy', 'updating'],
  resizing: ['busy', 'resizing'],
  deleting: ['busy', 'deleting'],
  running: ['busy', 'running'],
  draining: ['busy', 'draining'],
  pending: ['idle', 'pending'],
  retrying: ['warn', 'retrying'],
  drained: ['idle', 'drained'],
  undone: ['idle', 'undone'],
  available: ['good', 'available'],
  attached: ['good', 'attached'],
  active: ['good', 'active'],
  up: ['good', 'up'],
  free: ['good', 'free'],
  claimed: ['used', 'claimed'],
  waiting: ['busy', 'waiting'],
  held: ['busy', 'held'],
  fulfilled: ['good', 'fulfilled'],
  expired: ['idle', 'expired'],
  cancelled: ['idle', 'cancelled'],
  scheduled: ['idle', 'scheduled'],
  late: ['warn', 'late'],
  ended: ['idle', 'ended'],
  done: ['good', 'done'],
  delivered: ['good', 'delivered'],
  paid: ['good', 'paid'],
  open: ['busy', 'open'],
  approved: ['good', 'approved'],
  rejected: ['bad', 'rejected'],
  due: ['warn', 'due'],
  paying: ['good', 'paying'],
  never: ['idle', 'no payment method'],
  declined: ['bad', 'card declined'],
  removed: ['warn', 'card removed'],
  invited: ['idle', 'invited'],
  inactive: ['idle', 'inactive'],
  paused: ['idle', 'paused'],
  cordoned: ['warn', 'cordoned'],
  suspended: ['warn', 'suspended'],
  quarantined: ['warn', 'quarantined'],
  degraded: ['warn', 'degraded'],
  unhealthy: ['bad', 'unhealthy'],
  suspect: ['warn', 'suspect'],
  'check failed': ['bad', 'check failed'],
  failed: ['bad', 'failed'],
  failing: ['bad', 'failing'],
  down: ['bad', 'down'],
  gone: ['bad', 'missing'],
  stuck: ['bad', 'stuck'],
}

/** A host that is up can be cordoned, which the API shows as not schedulable. */
export const hostState = ({ state, schedulable }: { state: string; schedulable: boolean }): string =>
  state === 'up' && !schedulable ? 'cordoned' : state

/** Returns whether a host accepts new VMs. */
export const acceptsVms = (host: { state: string; schedulable: boolean }): boolean => hostState(host) === 'up'

/** An unused GPU is `unavailable` if its host accepts no VMs. */
export const gpuState = ({ state }: Gpu, host: Host): Gpu['state'] | 'unavailable' =>
  state === 'free' && !acceptsVms(host) ? 'unavailable' : state

/** The API shows a group whose members are all stopped as healthy. */
export const groupState = ({ state, members }: { state: string; members: { state: string }[] }): string =>
  state === 'HEALTHY' && members.length > 0 && members.every((member) => member.state === 'STATE_SHUTOFF')
    ? 'STATE_SHUTOFF'
    : state

export const stateWord = (state: string): string => stateStyles[state]?.[1] ?? state

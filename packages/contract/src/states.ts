/** The state tables that the server, the console and the tests share. */

export const vmStates = [
  'STATE_CREATING',
  'STATE_RUNNING',
  'STATE_STOPPING',
  'STATE_SHUTOFF',
  'STATE_STARTING',
  'STATE_RESETTING',
  'STATE_CRASHED',
  'STATE_UNREACHABLE',
  'STATE_DELETING',
] as const
export type VmState = (typeof vmStates)[number]

interface VmStateFacts {
  mayGoTo: VmState[]
  /** True if the VM itself is billed; its data disks are always billed separately. */
  isBilled: boolean
  holdsGpus: boolean
}

export const vmStateTable: Record<VmState, VmStateFacts> = {
  STATE_CREATING: { mayGoTo: ['STATE_RUNNING', 'STATE_DELETING'], isBilled: false, holdsGpus: true },
  STATE_RUNNING: {
    mayGoTo: ['STATE_STOPPING', 'STATE_RESETTING', 'STATE_CRASHED', 'STATE_UNREACHABLE', 'STATE_DELETING'],
    isBilled: true,
    holdsGpus: true,
  },
  STATE_STOPPING: {
    mayGoTo: ['STATE_SHUTOFF', 'STATE_UNREACHABLE', 'STATE_DELETING'],
    isBilled: true,
    holdsGpus: true,
  },
  STATE_SHUTOFF: { mayGoTo: ['STATE_STARTING', 'STATE_DELETING'], isBilled: false, holdsGpus: false },
  STATE_STARTING: {
    mayGoTo: ['STATE_RUNNING', 'STATE_SHUTOFF', 'STATE_UNREACHABLE', 'STATE_DELETING'],
    isBilled: false,
    holdsGpus: true,
  },
  STATE_RESETTING: {
    mayGoTo: ['STATE_RUNNING', 'STATE_CRASHED', 'STATE_UNREACHABLE', 'STATE_DELETING'],
    isBilled: true,
    holdsGpus: true,
  },
  STATE_CRASHED: {
    mayGoTo: ['STATE_RESETTING', 'STATE_STOPPING', 'STATE_DELETING'],
    isBilled: true,
    holdsGpus: true,
  },
  STATE_UNREACHABLE: {
    mayGoTo: ['STATE_RUNNING', 'STATE_CRASHED', 'STATE_SHUTOFF', 'STATE_DELETING'],
    isBilled: false,
    holdsGpus: true,
  },
  STATE_DELETING: { mayGoTo: [], isBilled: false, holdsGpus: true },
}

export type VmAction = 'START' | 'STOP' | 'RESET' | 'REPLACE'
export const vmActionNames = ['START', 'STOP', 'RESET', 'REPLACE'] as const satisfies VmAction[]

/** For each action: the states in which it is allowed, the state while it runs, and the final state. */
export const vmActions: Record<VmAction, { from: VmState[]; via: VmState; to: VmState }> = {
  START: { from: ['STATE_SHUTOFF'], via: 'STATE_STARTING', to: 'STATE_RUNNING' },
  STOP: { from: ['STATE_RUNNING', 'STATE_CRASHED'], via: 'STATE_STOPPING', to: 'STATE_SHUTOFF' },
  RESET: { from: ['STATE_RUNNING', 'STATE_CRASHED'], via: 'STATE_RESETTING', to: 'STATE_RUNNING' },
  REPLACE: { from: ['STATE_RUNNING', 'STATE_CRASHED'], via: 'STATE_STOPPING', to: 'STATE_RUNNING' },
}

/** States in which a VM has a serial console. */
export const vmConsoleStates: VmState[] = [
  'STATE_CREATING',
  'STATE_RUNNING',
  'STATE_STOPPING',
  'STATE_STARTING',
  'STATE_RESETTING',
  'STATE_UNREACHABLE',
]

/** The WebSocket protocol of a serial console, and the codes with which the server closes it. */
export const consoleProtocol = 'slipway.console.v1'
export const consoleCloseCodes = {
  takenOver: { code: 4001, text: 'Another session took over.' },
  revoked: { code: 4003, text: 'You no longer have access to this console.' },
  gone: { code: 4004, text: 'The VM was deleted.' },
  tooSlow: { code: 4008, text: 'The client reads more slowly than the VM writes.' },
  off: { code: 4010, text: 'The VM is off.' },
} as const

/** States in which a disk may be attached to or detached from a VM. */
export const vmDiskChangeStates: VmState[] = ['STATE_RUNNING', 'STATE_SHUTOFF']

export const diskStates = ['creating', 'available', 'resizing', 'deleting'] as const
export type DiskState = (typeof diskStates)[number]

/** States of custom images and snapshots. */
export const captureStates = ['creating', 'available', 'deleting'] as const
export type CaptureState = (typeof captureStates)[number]
/** How consistent a copy is. This depends on whether a VM could write to the disk while it was copied. */
export const captureConsistencies = ['off', 'frozen', 'crash'] as const
export type CaptureConsistency = (typeof captureConsistencies)[number]

export const ruleStates = ['creating', 'active', 'updating', 'deleting'] as const
export type RuleState = (typeof ruleStates)[number]

export const operationStates = ['IN_PROGRESS', 'SUCCEEDED', 'FAILED'] as const
export type OperationState = (typeof operationStates)[number]

export const operationNames = [
  'CREATE',
  'UPDATE',
  'DELETE',
  'START',
  'STOP',
  'RESET',
  'RESIZE',
  'ATTACH',
  'DETACH',
  'REPLACE',
] as const
export type OperationName = (typeof operationNames)[number]

/** The types of resources that operations work on. */
export const operationResourceTypes = [
  'vm',
  'disk',
  'firewall_rule',
  'instance_group',
  'custom_image',
  'snapshot',
] as const
export type OperationResourceType = (typeof operationResourceTypes)[number]

export const groupStates = ['HEALTHY', 'UPDATING', 'UNHEALTHY', 'DELETING'] as const
export type GroupState = (typeof groupStates)[number]
/** What happens to a group if a member is lost with its host. */
export const memberLossPolicies = ['none', 'replace'] as const
export type MemberLossPolicy = (typeof memberLossPolicies)[number]
export const maxGroupMembers = 64
/** Members are named after their group, with a hyphen and up to two digits. */
export const maxGroupNameLength = 60

/** How the members of a group are placed on hosts. */
export const placementPolicies = ['unspecified', 'spread', 'pack'] as const
export type PlacementPolicyName = (typeof placementPolicies)[number]

export const stepStates = ['pending', 'running', 'done', 'failed', 'undone'] as const

export const hostStates = ['up', 'down', 'draining', 'drained'] as const
export type HostState = (typeof hostStates)[number]

export const gpuStates = ['free', 'claimed', 'quarantined', 'held', 'gone'] as const
export type GpuState = (typeof gpuStates)[number]

export const capacityRequestStates = [
  'waiting',
  'held',
  'fulfilled',
  'expired',
  'cancelled',
  'failed',
] as const
export type CapacityRequestState = (typeof capacityRequestStates)[number]

export const reservationStates = ['scheduled', 'active', 'late', 'ended'] as const
export type ReservationState = (typeof reservationStates)[number]

export const roles = ['viewer', 'member', 'admin', 'owner'] as const
export type Role = (typeof roles)[number]

/** A bearer key is sent with each request; a signing key signs each request. */
export const keyKinds = ['bearer', 'signing'] as const
export type KeyKind = (typeof keyKinds)[number]

/** The limits of a VM's time to live, and the choices that the console offers. */
export const minTtlSeconds = 300
export const maxTtlSeconds = 2_592_000

export const ttlChoicesHours = [1, 4, 12, 24, 72, 168, 720] as const

export const expiryActions = ['stop', 'delete'] as const
export type ExpiryAction = (typeof expiryActions)[number]

/** The orders in which VMs and disks can be listed; a minus means descending order. */
export const sorts = ['created_at', '-created_at', 'name', '-name', 'usd_per_hour', '-usd_per_hour'] as const
export type Sort = (typeof sorts)[number]

/** The resources that have meters. */
export const meteredTypes = ['vm', 'disk', 'reservation', 'custom_image', 'snapshot', 'address'] as const
export type MeteredType = (typeof meteredTypes)[number]

/** States of an organization's payment method. */
export const paymentStates = ['never', 'active', 'declined', 'removed'] as const
export type PaymentState = (typeof paymentStates)[number]

export const deliveryStates = ['pending', 'delivered', 'failed'] as const
export type DeliveryState = (typeof deliveryStates)[number]

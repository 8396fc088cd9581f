import Type, { type Static } from 'typebox'
import { record, Timestamp } from '../schema.ts'

/** The health of a VM's GPUs, best status first. */
export const healthStatuses = ['healthy', 'degraded', 'unhealthy', 'unknown'] as const
export type HealthStatus = (typeof healthStatuses)[number]

/** What happens when a GPU of a VM is unhealthy. */
export const gpuFaultPolicies = ['none', 'replace'] as const
export type GpuFaultPolicy = (typeof gpuFaultPolicies)[number]

/** What reported a fault. `host`: the host found it itself. `guest`: the guest reported it, which may be false. */
export const faultSources = ['host', 'guest'] as const
export type FaultSource = (typeof faultSources)[number]

/** The VM action that resolves a fault; empty if there is none. */
export const healthActions = ['', 'RESET', 'REPLACE'] as const
export type HealthAction = (typeof healthActions)[number]

export const OnGpuFault = Type.Enum([...gpuFaultPolicies], {
  description:
    'What happens when a GPU of the VM is unhealthy: `none` only sends events; `replace` moves the VM to other GPUs. The VM is stopped and started, and keeps its id, disks, addresses and host keys; its local scratch data is lost. A VM is moved at most twice a day.',
})

export const HealthReason = record('HealthReason', {
  code: Type.String({
    description:
      '`xid_` and the number of an XID error of the GPU; `lost` if the GPU does not respond; `row_remap_failure` or `recovery_action` if its driver reports one of these.',
    examples: ['xid_79'],
  }),
  gpu_index: Type.Integer({ description: 'The position of the GPU in the VM, from 0.' }),
  source: Type.Enum([...faultSources], {
    description: 'What reported the fault. Faults that a guest reports do not affect billing.',
  }),
  message: Type.String({ examples: ['GPU 0 has fallen off the bus (XID 79).'] }),
  action: Type.Enum([...healthActions], {
    description: 'The VM action that resolves the fault. Empty if none is needed.',
  }),
  at: Timestamp,
})
export type HealthReason = Static<typeof HealthReason>

export const VmHealth = record('VmHealth', {
  status: Type.Enum([...healthStatuses], {
    description:
      '`degraded` if a reset resolves the faults, `unhealthy` if the VM needs other GPUs, `unknown` while the VM is being created, started or deleted, is off, or is unreachable.',
  }),
  since: Timestamp,
  reasons: Type.Array(HealthReason),
})
export type VmHealth = Static<typeof VmHealth>

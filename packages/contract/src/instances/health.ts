import Type, { type Static } from 'typebox'
import { record, Timestamp } from '../schema.ts'

/** The health of the GPUs of a VM. The best status is first. */
export const healthStatuses = ['healthy', 'degraded', 'unhealthy', 'unknown'] as const
export type HealthStatus = (typeof healthStatuses)[number]

/** What happens when a GPU of a VM is unhealthy. */
export const gpuFaultPolicies = ['none', 'replace'] as const
export type GpuFaultPolicy = (typeof gpuFaultPolicies)[number]

/** Who noticed a fault: the host has examined the GPU, while what a guest reports may be false. */
export const faultSources = ['host', 'guest'] as const
export type FaultSource = (typeof faultSources)[number]

/** The action of a VM that removes a fault, or none. */
export const healthActions = ['', 'RESET', 'REPLACE'] as const
export type HealthAction = (typeof healthActions)[number]

export const OnGpuFault = Type.Enum([...gpuFaultPolicies], {
  description:
    'What happens when a GPU of the VM is unhealthy: `none` only sends events; `replace` moves the VM to other GPUs. The VM is stopped and started, and keeps its id, disks, addresses and host keys; its local scratch data is lost. At most twice a day.',
})

export const HealthReason = record('HealthReason', {
  code: Type.String({
    description:
      '`xid_` and the number of an XID error of the GPU; `lost` if the GPU does not respond; `row_remap_failure` or `recovery_action` if its driver reports that.',
    examples: ['xid_79'],
  }),
  gpu_index: Type.Integer({ description: 'The position of the GPU in the VM, from 0.' }),
  source: Type.Enum([...faultSources], {
    description: 'Who noticed it. What a guest reports does not change the bill.',
  }),
  message: Type.String({ examples: ['GPU 0 has fallen off the bus (XID 79).'] }),
  action: Type.Enum([...healthActions], {
    description: 'The action of the VM that helps. Empty if none is needed.',
  }),
  at: Timestamp,
})
export type HealthReason = Static<typeof HealthReason>

export const VmHealth = record('VmHealth', {
  status: Type.Enum([...healthStatuses], {
    description:
      '`degraded` if a reset helps, `unhealthy` if the VM needs other GPUs, `unknown` while the VM does not run.',
  }),
  since: Timestamp,
  reasons: Type.Array(HealthReason),
})
export type VmHealth = Static<typeof VmHealth>

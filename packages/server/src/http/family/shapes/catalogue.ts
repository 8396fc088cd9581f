import type { Organization, Project, Quota, RouteResponse } from '@slipway/contract'
import type { GpuModel } from '../../../config/index.ts'

type Spec = RouteResponse<'specList'>['items'][number]

const gpuTypes: Record<GpuModel, string> = {
  'A40 48GB PCIe': 'A40-PCIe-48GB',
  'A100 40GB PCIe': 'A100-PCIe-40GB',
  'A100 80GB PCIe': 'A100-PCIe-80GB',
  'L40S 48GB PCIe': 'L40S-48GB',
}

export const typeShape = (spec: Spec) => ({
  ...spec,
  gpu_type: gpuTypes[spec.gpu_type as GpuModel] ?? spec.gpu_type,
})

export const projectShape = ({ id, name, organization_id }: Project) => ({
  ...{ id, name, organization_id },
  relation: '',
  resources: {},
})

export const organizationShape = ({ id, name }: Organization) => ({
  ...{ id, name },
  relation: '',
  state: '',
  state_reason: '',
  features: {},
})

/** Clients use the first quota whose name is a prefix of the VM type, so longer names come first. */
export const quotaShapes = (quotas: Quota[]) =>
  quotas.map(quotaShape).sort((a, b) => b.programmatic_name.length - a.programmatic_name.length)

function quotaShape({ name, max, used, available }: Quota) {
  const isGpu = name.endsWith('_gpus')
  const programmatic_name = name.replace(/_gpus$/, '')
  return {
    programmatic_name,
    category: isGpu ? 'GPU Instance' : 'Resource',
    type: name,
    description: isGpu ? `GPUs of ${programmatic_name} VMs` : name.replaceAll('_', ' '),
    max,
    used,
    available,
  }
}

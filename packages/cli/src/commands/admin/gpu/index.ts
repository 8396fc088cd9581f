import type { GroupSpec } from '../../../core/command.ts'
import { adminGpuCheck, adminGpuFaults } from './health.ts'
import { adminGpuList } from './list.ts'
import { adminGpuFree, adminGpuQuarantine } from './quarantine.ts'

export const adminGpu: GroupSpec = {
  name: 'gpu',
  summary: 'GPUs and their health',
  commands: [adminGpuList, adminGpuFaults, adminGpuCheck, adminGpuQuarantine, adminGpuFree],
}

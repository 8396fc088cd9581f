import type { GroupSpec } from '../../core/command.ts'
import { listCommand } from '../../core/generic-commands.ts'
import { locations } from './resource.ts'

export const location: GroupSpec = {
  name: 'location',
  summary: 'locations where VMs can run',
  commands: [listCommand(locations)],
}

import type { GroupSpec } from '../../core/command.ts'
import { listCommand } from '../../core/generic-commands.ts'
import { locations } from './resource.ts'

export const location: GroupSpec = {
  name: 'location',
  summary: 'places where VMs can be',
  commands: [listCommand(locations)],
}

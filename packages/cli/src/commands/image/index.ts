import type { GroupSpec } from '../../core/command.ts'
import { listCommand, showCommand } from '../../core/generic-commands.ts'
import { resolveAmong } from '../../core/names.ts'
import { images } from './resource.ts'

export const image: GroupSpec = {
  name: 'image',
  summary: 'images for new VMs',
  commands: [
    listCommand(images),
    showCommand(images, async (cli, id) => resolveAmong('image', id, await images.list(cli), images.named)),
  ],
}

import type { GroupSpec } from '../../../core/command.ts'
import { deleteCommand, listCommand } from '../../../core/generic-commands.ts'
import { adminImageChange } from './change.ts'
import { adminImageCreate } from './create.ts'
import { adminImages } from './resource.ts'

export const adminImage: GroupSpec = {
  name: 'image',
  summary: 'images in the catalogue',
  commands: [
    listCommand(adminImages, { group: 'admin' }),
    adminImageCreate,
    adminImageChange,
    deleteCommand(
      adminImages,
      async (cli, image_id) => {
        await cli.operator.adminImageDelete({ image_id })
        return {}
      },
      { group: 'admin' },
    ),
  ],
}

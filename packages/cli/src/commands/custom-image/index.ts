import type { CustomImage } from '@slipway/sdk'
import { labelCommand, protectCommands } from '../../core/annotation-commands.ts'
import type { GroupSpec } from '../../core/command.ts'
import { deleteCommand, listCommand, showCommand } from '../../core/generic-commands.ts'
import { selectorOption } from '../../core/labels.ts'
import { customImageCreate } from './create.ts'
import { customImages } from './resource.ts'

const kindWithLabels: Parameters<typeof labelCommand<CustomImage>>[0] = {
  resource: customImages,
  get: async (cli, custom_image_id) =>
    cli.client.customImageGet({ project_id: await cli.project(), custom_image_id }),
  change: async (cli, custom_image_id, { name: _, ...change }) =>
    cli.client.customImageUpdate({ project_id: await cli.project(), custom_image_id }, change),
}

export const customImage: GroupSpec = {
  name: 'custom-image',
  summary: 'images created from your own VMs',
  commands: [
    customImageCreate,
    listCommand<CustomImage, { selector?: string; prefix?: string }>(customImages, {
      options: [
        selectorOption,
        { flags: '--prefix <text>', description: 'only images whose name starts with this text' },
      ],
      list: async (cli, { selector, prefix }) =>
        cli.client.collect('customImageList', {
          project_id: await cli.project(),
          label_selector: selector,
          name_prefix: prefix,
        }),
    }),
    showCommand(customImages, async (cli, custom_image_id) =>
      cli.client.customImageGet({ project_id: await cli.project(), custom_image_id }),
    ),
    labelCommand(kindWithLabels),
    ...protectCommands(kindWithLabels),
    deleteCommand(
      customImages,
      async (cli, custom_image_id) =>
        cli.client.customImageDelete({ project_id: await cli.project(), custom_image_id }),
      { loses: 'VMs that were created from a deleted image continue to work.', isOperation: true },
    ),
  ],
}

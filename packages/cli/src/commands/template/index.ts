import type { ListItem } from '@slipway/sdk'
import type { GroupSpec } from '../../core/command.ts'
import { deleteCommand, listCommand, showCommand } from '../../core/generic-commands.ts'
import { selectorOption } from '../../core/labels.ts'
import { templateCreate } from './create.ts'
import { templates } from './resource.ts'

export const template: GroupSpec = {
  name: 'template',
  summary: 'instance templates for VMs and groups',
  commands: [
    templateCreate,
    listCommand<ListItem<'instanceTemplateList'>, { allVersions?: boolean; selector?: string }>(templates, {
      options: [{ flags: '--all-versions', description: 'also list earlier versions' }, selectorOption],
      list: async (cli, { allVersions, selector }) =>
        cli.client.collect('instanceTemplateList', {
          project_id: await cli.project(),
          latest: !allVersions,
          label_selector: selector,
        }),
    }),
    showCommand(templates, async (cli, instance_template_id) =>
      cli.client.instanceTemplateGet({ project_id: await cli.project(), instance_template_id }),
    ),
    deleteCommand(
      templates,
      async (cli, instance_template_id) => {
        await cli.client.instanceTemplateDelete({ project_id: await cli.project(), instance_template_id })
        return {}
      },
      { loses: 'Other versions are kept, and so are VMs that were created from a deleted version.' },
    ),
  ],
}

import { placementPolicies } from '@slipway/contract/states'
import type { RouteBody } from '@slipway/sdk'
import { command, oneOf } from '../../core/command.ts'
import { printOne } from '../../output/print.ts'
import { typeOption, type VmInput, vmFieldsOf, vmOptions } from '../vm/options.ts'
import { templates } from './resource.ts'

interface TemplateCreateInput extends VmInput {
  name: string
  location?: string
  placement?: NonNullable<RouteBody<'instanceTemplateCreate'>['placement_policy']>
  newVersion?: boolean
}

export const templateCreate = command<TemplateCreateInput>({
  name: 'create',
  summary: 'create an instance template, or a new version of one',
  details:
    'A version of a template never changes. VMs keep the version that they were created from. Scripts can contain secrets, so ' +
    'viewers and keys with the role `read` see only the digests of scripts.',
  arguments: [{ syntax: '<name>', description: 'name of the template' }],
  options: [
    typeOption,
    {
      flags: '--location <location>',
      description: 'location, or `any`',
      complete: 'location',
      also: ['any'],
    },
    ...vmOptions,
    { flags: '--placement <policy>', ...oneOf(placementPolicies) },
    { flags: '--new-version', description: 'add a version if the template exists' },
  ],
  examples: [
    'slipway template create trainer --type a100.1x --location us-east1-a --image ubuntu24.04-nvidia --ssh-key laptop',
    'slipway template create trainer --type a100.2x --startup-script setup.sh --new-version',
  ],
  async run(cli, { name, location, placement, newVersion, ...input }) {
    const body = {
      name,
      ...(newVersion && { new_version: true }),
      ...(location && { location }),
      ...(placement && { placement_policy: placement }),
      ...(await vmFieldsOf(cli, input)),
    }
    const template = await cli.client.instanceTemplateCreate({ project_id: await cli.project() }, body)
    await printOne(cli, template, templates.fields)
  },
})

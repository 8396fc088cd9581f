import { command } from '../../core/command.ts'
import { printOne } from '../../output/print.ts'

export const projectCreate = command<{ name: string; org?: string }>({
  name: 'create',
  summary: 'create a project',
  arguments: [{ syntax: '<name>', description: 'name of the project' }],
  options: [
    { flags: '--org <organization>', description: 'name or id of the organization', complete: 'org' },
  ],
  examples: ['slipway project create research', 'slipway project create research --org harbour-labs'],
  async run(cli, { name, org }) {
    const organization_id = await cli.organization(org)
    await printOne(cli, await cli.client.projectCreate({ name, organization_id }))
  },
})

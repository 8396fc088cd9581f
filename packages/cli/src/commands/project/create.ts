import { command } from '../../core/command.ts'
import { labelOption, parseLabels } from '../../core/labels.ts'
import { printOne } from '../../output/print.ts'

export const projectCreate = command<{ name: string; org?: string; label?: string[] }>({
  name: 'create',
  summary: 'create a project',
  arguments: [{ syntax: '<name>', description: 'name of the project' }],
  options: [
    { flags: '--org <organization>', description: 'name or id of the organization', complete: 'org' },
    labelOption,
  ],
  examples: ['slipway project create research', 'slipway project create research --org harbour-labs'],
  async run(cli, { name, org, label }) {
    const organization_id = await cli.organization(org)
    const body = { name, organization_id, ...(label && { labels: parseLabels(label) }) }
    await printOne(cli, await cli.client.projectCreate(body))
  },
})

import { command } from '../../../core/command.ts'
import { printOne } from '../../../output/print.ts'

export const adminOrgCreate = command<{ name: string }>({
  name: 'create',
  summary: 'create an organization',
  arguments: [{ syntax: '<name>', description: 'name of the organization' }],
  examples: ['slipway admin org create "Harbour Labs"'],
  async run(cli, { name }) {
    await printOne(cli, await cli.operator.adminOrganizationCreate({ name }))
  },
})

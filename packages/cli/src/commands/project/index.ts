import { command, type GroupSpec } from '../../core/command.ts'
import { deleteCommand, listCommand, showCommand } from '../../core/generic-commands.ts'
import { parseNumber } from '../../core/parse.ts'
import { idOf, refArgument } from '../../core/resource.ts'
import { UsageError } from '../../errors/cli-error.ts'
import { printOne } from '../../output/print.ts'
import { usd } from '../../output/text.ts'
import { projects } from './resource.ts'

interface BudgetInput {
  set?: number
  hardStop?: boolean
  none?: boolean
}

export const project: GroupSpec = {
  name: 'project',
  summary: 'projects and their budgets',
  commands: [
    listCommand(projects),
    showCommand(projects, (cli, project_id) => cli.client.projectGet({ project_id })),
    command<{ name: string; org?: string }>({
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
    }),
    command<{ ref: string; name: string }>({
      name: 'rename',
      summary: 'give a project another name',
      arguments: [refArgument(projects), { syntax: '<name>', description: 'the new name' }],
      examples: ['slipway project rename research experiments'],
      async run(cli, { ref, name }) {
        const project_id = await idOf(cli, projects, ref)
        await printOne(cli, await cli.client.projectUpdate({ project_id }, { name }))
      },
    }),
    deleteCommand(projects, async (cli, project_id) => {
      await cli.client.projectDelete({ project_id })
      return {}
    }),
    command<BudgetInput>({
      name: 'budget',
      summary: 'show or set the monthly budget of the project',
      options: [
        { flags: '--set <usd>', description: 'dollars per month', parse: parseNumber },
        { flags: '--none', description: 'take the budget away' },
        { flags: '--hard-stop', description: 'refuse what costs money once it is spent' },
      ],
      examples: [
        'slipway project budget',
        'slipway project budget --set 500 --hard-stop',
        'slipway project budget --none',
      ],
      async run(cli, { set, none, hardStop }) {
        if (set !== undefined && none) throw new UsageError('--set and --none exclude each other.')
        const target = { project_id: await cli.project() }
        const isChange = set !== undefined || none || hardStop
        const monthly_usd = none
          ? null
          : (set ?? (isChange ? (await cli.client.budgetGet(target)).monthly_usd : null))
        const budget = isChange
          ? await cli.client.budgetSet(target, { monthly_usd, hard_stop: hardStop })
          : await cli.client.budgetGet(target)
        await printOne(cli, budget, ({ monthly_usd, spent_usd, hard_stop }) => [
          ['Monthly', monthly_usd === null ? 'none' : usd(monthly_usd)],
          ['Spent', usd(spent_usd)],
          ['When spent', hard_stop ? 'refuse what costs money' : 'go on'],
        ])
      },
    }),
  ],
}

import { command } from '../../core/command.ts'
import { parseNumber } from '../../core/parse.ts'
import { UsageError } from '../../errors/cli-error.ts'
import { printOne } from '../../output/print.ts'
import { usd } from '../../output/text.ts'

interface BudgetInput {
  set?: number
  hardStop?: boolean
  none?: boolean
}

export const projectBudget = command<BudgetInput>({
  name: 'budget',
  summary: 'show or set the monthly budget of the project',
  options: [
    { flags: '--set <usd>', description: 'dollars per month', parse: parseNumber },
    { flags: '--none', description: 'remove the budget' },
    { flags: '--hard-stop', description: 'when the budget is spent, reject requests that cost money' },
  ],
  examples: [
    'slipway project budget',
    'slipway project budget --set 500 --hard-stop',
    'slipway project budget --none',
  ],
  async run(cli, { set, none, hardStop }) {
    if (set !== undefined && none) throw new UsageError('--set and --none cannot be used together.')
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
      ['When spent', hard_stop ? 'reject requests that cost money' : 'continue'],
    ])
  },
})

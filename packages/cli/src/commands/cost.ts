import { command } from '../core/command.ts'
import { print, printOne } from '../output/print.ts'
import { bar, usd } from '../output/text.ts'

export const cost = command<{ org?: string | true }>({
  name: 'cost',
  summary: 'show current cost, month to date and forecast',
  options: [
    { flags: '--org [organization]', description: 'all projects of the organization', complete: 'org' },
  ],
  examples: ['slipway cost', 'slipway cost --org', 'slipway cost -o json'],
  async run(cli, { org }) {
    const costs = org
      ? await cli.client.organizationCosts({
          organization_id: await cli.organization(org === true ? undefined : org),
        })
      : await cli.client.projectCosts({ project_id: await cli.project() })
    await printOne(
      cli,
      costs,
      ({ usd_per_hour, today_usd, month_to_date_usd, last_month_usd, forecast_usd, as_of }) => [
        ['Now', `${usd(usd_per_hour)} per hour`],
        ['Today', usd(today_usd)],
        ['Month to date', usd(month_to_date_usd)],
        ['Forecast for this month', usd(forecast_usd)],
        ['Last month', usd(last_month_usd)],
        ['As of', as_of],
      ],
    )
    if (cli.format.kind !== 'table' || cli.format.columns || costs.by_product.length === 0) return
    const highest = Math.max(...costs.by_product.map((product) => product.usd))
    print(cli, '')
    for (const { product_name, usd: sum } of costs.by_product) {
      const chartBar = bar(highest > 0 ? sum / highest : 0, 40)
      print(cli, `${product_name.padEnd(16)}${usd(sum).padStart(12)}  ${cli.colors.cyan(chartBar)}`)
    }
  },
})

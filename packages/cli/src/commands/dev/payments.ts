import { type PaymentState, paymentStates } from '@slipway/sdk'
import { knownWord } from '../../core/closed-set.ts'
import { command } from '../../core/command.ts'
import { printOne } from '../../output/print.ts'

export const devPayments = command<{ state: string; org?: string }>({
  name: 'payments',
  summary: "set the state of an organization's payment method",
  arguments: [{ syntax: '<state>', description: paymentStates.join(', '), complete: paymentStates }],
  options: [
    {
      flags: '--org <organization>',
      description: "name or id of the organization (default: the project's organization)",
      complete: 'org',
    },
  ],
  examples: ['slipway dev payments declined', 'slipway dev payments active'],
  async run(cli, { state, org }) {
    const known = knownWord('The state', state, paymentStates) as PaymentState
    const organization_id = await cli.organization(org)
    await printOne(cli, await cli.levers.payments.set({ organization_id, state: known }))
  },
})

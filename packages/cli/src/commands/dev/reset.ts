import { confirmLoss } from '../../core/ask.ts'
import { command } from '../../core/command.ts'
import { printOne } from '../../output/print.ts'

export const devReset = command<{ yes?: boolean }>({
  name: 'reset',
  summary: 'delete everything except the demo data, delete all faults, and reset the clock to real time',
  details: 'The demo credentials keep working.',
  options: [{ flags: '-y, --yes', description: 'skip the confirmation' }],
  examples: ['slipway dev reset', 'slipway dev reset --yes'],
  async run(cli, { yes }) {
    const { apiUrl } = cli.settings
    await confirmLoss(cli, `Delete everything at ${apiUrl} except the demo data and its credentials?`, yes)
    await printOne(cli, await cli.levers.reset())
  },
})

import { command } from '../../core/command.ts'
import { printOne } from '../../output/print.ts'

export const orgAlertRecipients = command<{ emails: string[]; none?: boolean }>({
  name: 'alert-recipients',
  summary: 'show or set the additional recipients of alerts',
  details:
    'Owners and admins get e-mails about budgets, payments and quota requests. Additional recipients get the same e-mails. The addresses that you pass replace the current ones.',
  arguments: [{ syntax: '[emails...]', description: 'e-mail addresses, at most 10' }],
  options: [{ flags: '--none', description: 'remove all additional recipients' }],
  examples: [
    'slipway org alert-recipients',
    'slipway org alert-recipients oncall@example.com billing@example.com',
    'slipway org alert-recipients --none',
  ],
  async run(cli, { emails, none }) {
    const target = { organization_id: await cli.organization() }
    const isChange = none || emails.length > 0
    const recipients = isChange
      ? await cli.client.alertRecipientsSet(target, { emails: none ? [] : emails })
      : await cli.client.alertRecipientsGet(target)
    await printOne(cli, recipients, (shown) => [['Recipients', shown.emails.join(', ') || 'none']])
  },
})

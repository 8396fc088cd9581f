import { spawn } from 'node:child_process'
import type { Cli } from '../core/cli.ts'
import { command } from '../core/command.ts'
import { print, printData } from '../output/print.ts'

export const billing = command<{ org?: string; open?: boolean }>({
  name: 'billing',
  summary: 'print the link to the billing dashboard, and open it',
  details: 'The link works for 15 minutes. On a terminal, the command opens it in the browser.',
  arguments: [{ syntax: '[org]', description: 'name or id of the organization', complete: 'org' }],
  options: [{ flags: '--no-open', description: 'print the link without opening it' }],
  examples: ['slipway billing', 'slipway billing --no-open'],
  async run(cli, { org, open }) {
    const session = await cli.client.organizationBilling({ organization_id: await cli.organization(org) })
    if (cli.format.kind === 'table') print(cli, session.url)
    else await printData(cli, session)
    if (open !== false && cli.isInteractive && cli.io.stdout.isTTY && isWebLink(session.url))
      openInBrowser(cli, session.url)
  },
})

/** A link with another scheme could start a program on this computer. */
const isWebLink = (text: string): boolean => URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)

/** Ignores failures, because the link has already been printed. */
function openInBrowser(cli: Cli, url: string): void {
  const program = process.platform === 'darwin' ? 'open' : 'xdg-open'
  spawn(program, [new URL(url).href], { stdio: 'ignore', detached: true, env: cli.env })
    .on('error', () => {})
    .unref()
}

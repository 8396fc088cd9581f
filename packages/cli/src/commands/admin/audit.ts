import { command, type GroupSpec } from '../../core/command.ts'
import { parseNumber } from '../../core/parse.ts'
import { printLine } from '../../output/print.ts'

const exportLog = command<{ since?: number }>({
  name: 'export',
  summary: 'write the audit log as JSON lines, oldest first',
  details:
    'To continue an export, pass the position of its last line to --since. No event is skipped or repeated. Events are kept for 90 days; older positions are rejected.',
  options: [
    { flags: '--since <position>', description: 'only events after this position', parse: parseNumber },
  ],
  examples: [
    'slipway admin audit export > audit.jsonl',
    'slipway admin audit export --since 4711 >> audit.jsonl',
  ],
  async run(cli, { since = 0 }) {
    let last = since
    for await (const event of cli.operator.each('adminEventList', { after: since, limit: 500 })) {
      printLine(cli, event)
      last = event.position
    }
    cli.note(`Continue with --since ${last}.`)
  },
})

export const adminAudit: GroupSpec = {
  name: 'audit',
  summary: 'audit log export',
  commands: [exportLog],
}

import type { OptionSpec } from './command.ts'

/** Every command takes these. */
export const globalOptions: OptionSpec[] = [
  {
    flags: '-o, --output <form>',
    description: 'table, json, yaml or columns=name,state,…',
    complete: ['table', 'json', 'yaml', 'columns='],
  },
  {
    flags: '--project <project>',
    description: 'name or id of the project (SLIPWAY_PROJECT)',
    complete: 'project',
  },
  {
    flags: '--context <name>',
    description: 'use another context than the current one (SLIPWAY_CONTEXT)',
    complete: 'context',
  },
  { flags: '--api-url <url>', description: 'address of the service (SLIPWAY_API_URL)' },
  {
    flags: '--access-key <key>',
    description: 'access key (SLIPWAY_ACCESS_KEY keeps it out of the process list)',
  },
  { flags: '-q, --quiet', description: 'no notes and no progress' },
  { flags: '--no-header', description: 'tables without their first line' },
  { flags: '--no-color', description: 'no colours (NO_COLOR)' },
]

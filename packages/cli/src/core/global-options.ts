import type { OptionSpec } from './command.ts'

/** The options that every command accepts. */
export const globalOptions: OptionSpec[] = [
  {
    flags: '-o, --output <format>',
    description: 'output format: table, json, yaml or columns=name,state,…',
    complete: ['table', 'json', 'yaml', 'columns='],
  },
  {
    flags: '--project <project>',
    description: 'name or id of the project (SLIPWAY_PROJECT)',
    complete: 'project',
  },
  {
    flags: '--context <name>',
    description: 'context to use instead of the current one (SLIPWAY_CONTEXT)',
    complete: 'context',
  },
  { flags: '--api-url <url>', description: 'URL of the service (SLIPWAY_API_URL)' },
  {
    flags: '--access-key <key>',
    description: 'access key (SLIPWAY_ACCESS_KEY keeps it out of the process list)',
  },
  { flags: '-q, --quiet', description: 'suppress notes and progress output' },
  { flags: '--no-header', description: 'omit the table header' },
  { flags: '--no-color', description: 'disable colors (NO_COLOR)' },
]

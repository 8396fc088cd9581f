import { command } from '../../core/command.ts'
import { toolsetNames } from './toolsets.ts'

export const mcp = command<{ allowWrites?: boolean; admin?: boolean; toolsets?: string[] }>({
  name: 'mcp',
  summary: 'run an MCP server for AI agents on standard input and output',
  details:
    'Speaks the Model Context Protocol. Reads only, unless --allow-writes. An agent’s configuration names the command: ' +
    '{"mcpServers": {"slipway": {"command": "slipway", "args": ["mcp"]}}}',
  options: [
    { flags: '--allow-writes', description: 'also create, change and delete' },
    { flags: '--admin', description: 'also the operator’s side' },
    {
      flags: '--toolsets <sets>',
      description: `only these toolsets, to keep the list short for an agent: ${toolsetNames.join(', ')}`,
      values: toolsetNames,
      isList: true,
    },
  ],
  examples: [
    'slipway mcp',
    'slipway mcp --allow-writes',
    'slipway mcp --toolsets catalogue,vms --project research',
  ],
  async run(cli, { allowWrites, admin, toolsets }) {
    // Report a missing login at the start, not at the agent's first call.
    void cli.client
    const { serveMcp } = await import('./server.ts')
    const options = { allowsWrites: allowWrites === true, includesAdmin: admin === true, toolsets }
    await serveMcp(cli, options, cli.io.stdin, cli.io.stdout)
  },
})

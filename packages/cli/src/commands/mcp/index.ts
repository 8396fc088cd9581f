import { command } from '../../core/command.ts'
import { toolsetNames } from './toolsets.ts'

export const mcp = command<{ allowWrites?: boolean; admin?: boolean; toolsets?: string[] }>({
  name: 'mcp',
  summary: 'run an MCP server for AI agents on standard input and output',
  details:
    'Provides the API as Model Context Protocol tools. The tools are read-only unless you add --allow-writes. They use the project of the current context, or the project in the global option --project. Add the command to the configuration of the agent: ' +
    '{"mcpServers": {"slipway": {"command": "slipway", "args": ["mcp"]}}}',
  options: [
    { flags: '--allow-writes', description: 'also provide tools that create, change and delete resources' },
    { flags: '--admin', description: 'also provide tools for operators' },
    {
      flags: '--toolsets <sets>',
      description: `provide only these toolsets, so that the list of tools is short. Supported: ${toolsetNames.join(', ')}`,
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

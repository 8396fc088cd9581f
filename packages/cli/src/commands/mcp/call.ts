import { Operation } from '@slipway/contract'
import type { Cli } from '../../core/cli.ts'
import { idOf } from '../../core/resource.ts'
import { CliError, exitCodes } from '../../errors/cli-error.ts'
import { errorRecord } from '../../errors/explain.ts'
import { resources } from '../resources.ts'
import { nounOf, outputSchema, type RouteTool } from './tools.ts'

interface ToolResult {
  content: { type: 'text'; text: string }[]
  structuredContent?: Record<string, unknown>
  isError?: true
}

export const waitTool = {
  name: 'operation_wait',
  title: 'Wait for an operation',
  description:
    'Waits until an operation ends and returns it. Tools that create, change or delete VMs, disks, firewall rules, instance groups, custom images and snapshots return an operation; call this tool before you use the resource.',
  inputSchema: {
    type: 'object',
    properties: {
      operation_id: {
        type: 'string',
        description: 'The operation_id from the response that started the operation.',
      },
      project_id: { type: 'string', description: 'The default is the project of the current context.' },
      timeout_seconds: { type: 'integer', minimum: 1, maximum: 3600, default: 300 },
    },
    required: ['operation_id'],
    additionalProperties: false,
  },
  outputSchema: outputSchema(Operation),
  annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },
} as const

type Input = Record<string, unknown>

export async function callWait(cli: Cli, input: Input, signal: AbortSignal): Promise<ToolResult> {
  return toToolResult(async () => {
    const project_id = String(input.project_id ?? (await cli.project()))
    const timeoutMs = Number(input.timeout_seconds ?? 300) * 1000
    return cli.client.wait({ project_id }, String(input.operation_id), { timeoutMs, signal })
  })
}

export async function callTool(
  cli: Cli,
  routeTool: RouteTool,
  input: Input,
  signal: AbortSignal,
): Promise<ToolResult> {
  return toToolResult(async () => {
    const { partOf, routeId, tool, isBodyWhole, isOperator } = routeTool
    const missing = tool.inputSchema.required.filter((name) => input[name] === undefined)
    const unknown = Object.keys(input).filter((name) => !partOf.has(name))
    if (missing.length > 0) throw badInput(`Missing: ${missing.join(', ')}.`)
    if (unknown.length > 0) throw badInput(`Unknown: ${unknown.join(', ')}.`)
    const parts = { params: {} as Record<string, string>, query: {} as Input, body: {} as Input }
    for (const [name, part] of partOf) {
      if (part === 'params') parts.params[name] = await paramOf(cli, name, input[name], isOperator)
      else if (input[name] !== undefined) parts[part][name] = input[name]
    }
    const client = isOperator ? cli.operator : cli.client
    const body = isBodyWhole ? input.body : parts.body
    return client.call(routeId, { ...parts, body, signal } as never)
  })
}

const badInput = (message: string) => new CliError('invalid_argument', message, exitCodes.usage)

async function paramOf(cli: Cli, name: string, value: unknown, isOperator: boolean): Promise<string> {
  if (value === undefined && name === 'project_id') return cli.project()
  if (value === undefined && name === 'organization_id') return cli.organization()
  const noun = nounOf(name, isOperator)
  return noun ? idOf(cli, resources[noun], String(value)) : String(value)
}

/** Returns errors as results too, so that the agent can read them and try something else. */
async function toToolResult(work: () => Promise<unknown>): Promise<ToolResult> {
  try {
    const result = await work()
    const structured = Array.isArray(result) ? { items: result } : (result as Record<string, unknown>)
    return { content: [{ type: 'text', text: JSON.stringify(result) }], structuredContent: structured }
  } catch (error) {
    return { content: [{ type: 'text', text: JSON.stringify(errorRecord(error)) }], isError: true }
  }
}

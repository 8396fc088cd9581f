import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import type { Cli } from '../../core/cli.ts'
import { version } from '../../version.ts'
import { callTool, callWait, waitTool } from './call.ts'
import { routeTools, type ToolOptions } from './tools.ts'

interface Message {
  jsonrpc: '2.0'
  id?: string | number
  method?: string
  params?: Record<string, unknown>
}

const protocolVersions = ['2025-06-18', '2025-03-26', '2024-11-05']
const errorCodes = {
  parse: -32700,
  invalidRequest: -32600,
  unknownMethod: -32601,
  invalidParams: -32602,
  internal: -32603,
}

/**
 * Serves the Model Context Protocol over a pair of streams, with one JSON-RPC message per line, until the
 * input ends. Calls run concurrently, and each can be cancelled.
 */
export async function serveMcp(
  cli: Cli,
  options: ToolOptions,
  input: Readable,
  output: Writable,
): Promise<void> {
  const tools = new Map(routeTools(options).map((entry) => [entry.tool.name, entry]))
  const running = new Map<string | number, AbortController>()
  const pending = new Set<Promise<void>>()

  const send = (message: object) => output.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
  const sendError = (id: string | number | null, code: number, message: string) =>
    send({ id, error: { code, message } })

  async function call(id: string | number, params: Record<string, unknown>): Promise<void> {
    const name = String(params.name)
    const argumentsGiven = (params.arguments ?? {}) as Record<string, unknown>
    const entry = tools.get(name)
    if (!entry && name !== waitTool.name)
      return void sendError(id, errorCodes.invalidParams, `Unknown tool ${name}.`)
    const controller = new AbortController()
    running.set(id, controller)
    const { signal } = controller
    const result = entry
      ? await callTool(cli, entry, argumentsGiven, signal)
      : await callWait(cli, argumentsGiven, signal)
    running.delete(id)
    // The protocol requires that a cancelled request gets no response.
    if (!signal.aborted) send({ id, result })
  }

  async function handle(message: Message): Promise<void> {
    const { id, method, params = {} } = message
    if (id === undefined) {
      if (method === 'notifications/cancelled') running.get(params.requestId as string | number)?.abort()
      return
    }
    switch (method) {
      case 'initialize':
        return void send({ id, result: initializeResult(params, options) })
      case 'ping':
        return void send({ id, result: {} })
      case 'tools/list':
        return void send({
          id,
          result: { tools: [...Array.from(tools.values(), ({ tool }) => tool), waitTool] },
        })
      case 'tools/call':
        return call(id, params)
      default:
        return void sendError(id, errorCodes.unknownMethod, `Unknown method ${method}.`)
    }
  }

  for await (const line of createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })) {
    if (line.trim() === '') continue
    const message = parseMessage(line)
    if (message === undefined) sendError(null, errorCodes.parse, 'Not a JSON-RPC message.')
    else {
      const work = handle(message).catch((error) =>
        sendError(
          message.id ?? null,
          errorCodes.internal,
          error instanceof Error ? error.message : String(error),
        ),
      ) as Promise<void>
      pending.add(work)
      work.finally(() => pending.delete(work))
    }
  }
  await Promise.allSettled(pending)
}

function initializeResult(params: Record<string, unknown>, options: ToolOptions) {
  const wanted = String(params.protocolVersion)
  return {
    protocolVersion: protocolVersions.includes(wanted) ? wanted : protocolVersions[0],
    capabilities: { tools: {} },
    serverInfo: { name: 'slipway', title: 'Slipway', version },
    instructions: `GPU virtual machines of one Slipway project. ${
      options.allowsWrites
        ? 'Resources cost money: check offer_list and estimate_create first, and delete what is not needed.'
        : 'Read-only. To allow changes, the user can restart the server with --allow-writes.'
    }`,
  }
}

function parseMessage(line: string): Message | undefined {
  try {
    const message = JSON.parse(line) as Message
    return message?.jsonrpc === '2.0' ? message : undefined
  } catch {
    return undefined
  }
}

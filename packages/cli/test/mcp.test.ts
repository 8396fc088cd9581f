import { beforeAll, expect, test } from 'vitest'
import { cliWithServer } from './support/with-server.ts'

const cli = cliWithServer()
beforeAll(() => cli.createVm('train-7'))

interface Answer {
  // biome-ignore lint/suspicious/noExplicitAny: what a tool answers is looked at, not typed
  result: any
  error?: { code: number; message: string }
}

/** A conversation with `slipway mcp`: requests go out together, answers come back by id. */
async function converse(words: string[], requests: { method: string; params?: object }[]) {
  const lines = requests.map((request, id) => `${JSON.stringify({ jsonrpc: '2.0', id, ...request })}\n`)
  const { stdout } = await cli.runAs(['mcp', ...words], { env: cli.env, input: lines.join('') })
  const answers = new Map<number, Answer>()
  for (const line of stdout.split('\n').slice(0, -1)) {
    const message = JSON.parse(line)
    answers.set(message.id, message)
  }
  return requests.map((_, id) => answers.get(id) ?? { result: undefined })
}
const call = (name: string, given: object = {}) => ({
  method: 'tools/call',
  params: { name, arguments: given },
})

test('tools for agents introduce themselves and read by name', async () => {
  const [hello, ping, list, vm, unknown, nothing] = await converse(
    [],
    [
      { method: 'initialize', params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: {} } },
      { method: 'ping' },
      { method: 'tools/list' },
      call('vm_get', { vm_id: 'train-7' }),
      { method: 'resources/list' },
      call('vm_get', { vm_id: 'nobody' }),
    ],
  )
  expect(hello!.result).toMatchObject({ protocolVersion: '2025-06-18', serverInfo: { name: 'slipway' } })
  expect(ping!.result).toEqual({})
  for (const tool of list!.result.tools) {
    expect(tool.annotations.readOnlyHint, tool.name).toBe(true)
    expect(tool.inputSchema.type).toBe('object')
  }
  expect(vm!.result.structuredContent).toMatchObject({ name: 'train-7', state: 'STATE_RUNNING' })
  expect(unknown!.error?.code).toBe(-32601)
  expect(nothing!.result.isError).toBe(true)
  expect(JSON.parse(nothing!.result.content[0].text)).toMatchObject({ code: 'not_found' })
})

test('tools for agents change nothing unless they may', async () => {
  const [refused] = await converse([], [call('vm_delete', { vm_id: 'train-7' })])
  expect(refused!.error?.message).toContain('There is no tool vm_delete')
  const disk = { name: 'agents', size: '10GiB', location: 'us-east1-a' }
  const [started] = await converse(['--allow-writes'], [call('disk_create', disk)])
  const { operation_id } = started!.result.structuredContent.operation
  const [ended, bad] = await converse(
    ['--allow-writes'],
    [call('operation_wait', { operation_id }), call('disk_create', { ...disk, colour: 'red' })],
  )
  expect(ended!.result.structuredContent).toMatchObject({ state: 'SUCCEEDED', result: { name: 'agents' } })
  expect(bad!.result.isError).toBe(true)
})

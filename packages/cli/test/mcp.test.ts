import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { answer, scriptedServer } from '@slipway/testing/scripted-server.ts'
import { afterEach, beforeAll, expect, test } from 'vitest'
import { binary } from './support/cli.ts'
import { cliWithServer } from './support/with-server.ts'

const cli = cliWithServer()
beforeAll(() => cli.createVm('train-7'))

const clients: Client[] = []
afterEach(async () => {
  for (const client of clients.splice(0)) await client.close()
})

/** Connects to `slipway mcp` with the protocol's own client, which checks results against their schemas. */
const agent = (...words: string[]) => agentOf(cli.env, ...words)

async function agentOf(settings: Record<string, string>, ...words: string[]) {
  const client = new Client({ name: 'test', version: '0' })
  clients.push(client)
  const env = { ...cli.base, ...settings }
  await client.connect(
    new StdioClientTransport({ command: process.execPath, args: [binary, 'mcp', ...words], env }),
  )
  const { tools } = await client.listTools()
  // biome-ignore lint/suspicious/noExplicitAny: the tests check the results of tools at run time
  const call = async (name: string, given: object = {}): Promise<any> =>
    client.callTool({ name, arguments: given as Record<string, unknown> })
  return { client, call, tools, names: tools.map(({ name }) => name) }
}

test('tools for agents have descriptions and find resources by name', async () => {
  const { client, call, tools } = await agent()
  expect(client.getServerVersion()).toMatchObject({ name: 'slipway' })
  await client.ping()
  for (const { name, annotations } of tools) expect(annotations?.readOnlyHint, name).toBe(true)
  const vm = await call('vm_get', { vm_id: 'train-7' })
  expect(vm.structuredContent).toMatchObject({ name: 'train-7', state: 'STATE_RUNNING' })
  const nothing = await call('vm_get', { vm_id: 'nobody' })
  expect(nothing.isError).toBe(true)
  expect(JSON.parse(nothing.content[0].text)).toMatchObject({ code: 'not_found' })
})

test('every list that an agent can read matches the schema of its tool', async () => {
  const { call, tools } = await agent()
  const lists = tools.filter(
    ({ name, inputSchema }) => name.endsWith('_list') && !inputSchema.required?.length,
  )
  expect(lists.length).toBeGreaterThan(10)
  for (const { name, outputSchema } of lists) {
    expect(outputSchema?.type, name).toBe('object')
    const result = await call(name)
    // A project key may not read everything of its organization.
    if (result.isError) expect(JSON.parse(result.content[0].text).code, name).toBe('permission_denied')
    else expect(result.structuredContent.items, name).toBeInstanceOf(Array)
  }
})

test('tools can be limited to toolsets, and operations of all resources share their tools', async () => {
  const { names } = await agent('--toolsets', 'vms,operations')
  expect(names).toContain('vm_list')
  expect(names).toContain('operation_list')
  expect(names).toContain('root_get')
  expect(names).not.toContain('disk_list')
  expect(names).not.toContain('vm_operation_list')
  expect(names.filter((name) => name.includes('operation_get'))).toEqual(['operation_get'])
  const { code, stderr } = await cli.slipway('mcp', '--toolsets', 'machines')
  expect(code).toBe(2)
  expect(stderr).toContain('Supported: organizations, projects, catalogue, vms')
})

test('tools that stop or delete resources are marked as destructive', async () => {
  const { tools } = await agent('--allow-writes', '--admin')
  const destructive = tools.filter(({ annotations }) => annotations?.destructiveHint).map(({ name }) => name)
  for (const name of ['vm_update', 'vm_detach_disks', 'vm_delete', 'webhook_rotate_secret', 'admin_vm_stop'])
    expect(destructive).toContain(name)
  expect(destructive).not.toContain('vm_create')
  expect(destructive).not.toContain('disk_create')
})

test('tools for agents change nothing without --allow-writes', async () => {
  const reader = await agent()
  expect(reader.names).not.toContain('vm_delete')
  await expect(reader.call('vm_delete', { vm_id: 'train-7' })).rejects.toThrow('Unknown tool vm_delete')
  const writer = await agent('--allow-writes')
  const disk = { name: 'agents', size: '10GiB', location: 'us-east1-a' }
  const started = await writer.call('disk_create', disk)
  const { operation_id } = started.structuredContent.operation
  const ended = await writer.call('operation_wait', { operation_id })
  expect(ended.structuredContent).toMatchObject({ state: 'SUCCEEDED', result: { name: 'agents' } })
  expect(await writer.call('disk_create', { ...disk, colour: 'red' })).toMatchObject({ isError: true })
})

const hostileIds = ['..', '.', '', '%2e%2e', 'a/b', '..%2f', '../../vms']

test('no id from a read-only agent makes its call reach another route', async () => {
  const server = await scriptedServer(answer(200, { items: [], next_page_token: '' }))
  const { call, tools } = await agentOf({ ...cli.env, SLIPWAY_API_URL: server.url }, '--admin')
  const toolsWithIds = tools.filter(({ inputSchema }) =>
    Object.keys(inputSchema.properties ?? {}).some((name) => name.endsWith('_id')),
  )
  expect(toolsWithIds.length).toBeGreaterThan(20)
  for (const { name, inputSchema } of toolsWithIds) {
    const members = Object.keys(inputSchema.properties ?? {}).filter((member) => member.endsWith('_id'))
    const others = (inputSchema.required ?? []).filter((member) => !members.includes(member))
    for (const id of hostileIds) {
      const given = [...members.map((member) => [member, id]), ...others.map((member) => [member, {}])]
      await call(name, Object.fromEntries(given))
    }
  }
  // Names are looked up in lists. No other request is sent, and no path has an unexpected meaning.
  for (const { method, path } of server.requests) {
    expect(method).toBe('GET')
    expect(new URL(path, server.url).pathname).toBe(path.split('?')[0])
  }
  await server.close()
})

test('an agent with write access deletes only the resource it names', async () => {
  const { call } = await agent('--allow-writes')
  const withId = { ssh_key_delete: 'ssh_key_id', vm_delete: 'vm_id', disk_delete: 'disk_id' }
  for (const [tool, member] of Object.entries(withId))
    for (const id of hostileIds) expect(await call(tool, { [member]: id })).toMatchObject({ isError: true })
  for (const id of hostileIds) {
    const replay = { webhook_id: cli.server.project_id, delivery_id: id }
    expect(await call('webhook_delivery_replay', replay)).toMatchObject({ isError: true })
    expect(await call('project_delete', { project_id: id })).toMatchObject({ isError: true })
  }
  const { id, name } = await cli.json('project', 'show', cli.server.project_id)
  expect({ id, name }).toMatchObject({ id: cli.server.project_id })
})

test('operator tools find a user of no organization by e-mail address, and a key only by id', async () => {
  const { call, tools } = await agent('--admin', '--allow-writes')
  const textOf = (tool: string, param: string) => {
    const { properties } = tools.find(({ name }) => name === tool)!.inputSchema
    return (properties![param] as { description: string }).description
  }
  expect(textOf('admin_user_get', 'user_id')).toBe('E-mail address or id of the user.')
  expect(textOf('admin_key_delete', 'key_id')).toBe('Id of the key.')
  const email = 'grace@example.com'
  const created = await call('admin_user_create', { email })
  // A person is a user only after accepting the invitation.
  const accepted = await fetch(`${cli.server.api_url}/v0.1/auth/accept`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      code: created.structuredContent.invite_url.split('#code=')[1],
      password: 'correct horse battery',
    }),
  })
  expect(accepted.status).toBe(200)
  const found = await call('admin_user_get', { user_id: email })
  expect(found.structuredContent).toMatchObject({ email, memberships: [] })
})

test('an unsupported protocol method is rejected', async () => {
  const line = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'resources/list' })
  const { stdout } = await cli.runAs(['mcp'], { env: cli.env, input: `${line}\n` })
  expect(JSON.parse(stdout).error.code).toBe(-32601)
})

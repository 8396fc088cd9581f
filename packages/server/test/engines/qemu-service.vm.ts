import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import type { RouteResponse } from '@slipway/contract'
import { createDatabase, query, type TestDatabase } from '@slipway/testing/database.ts'
import { eventually } from '@slipway/testing/eventually.ts'
import { credentialsOf, Launcher, readyLine } from '@slipway/testing/launcher.ts'
import { type Program, startProgram } from '@slipway/testing/program.ts'
import { root } from '@slipway/testing/root.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { newHostKey } from '../../src/domain/guest/host-key.ts'
import { hungImage, makeBench, type QemuBench } from '../support/qemu-bench.ts'
import { fakeNvidiaSmi, reportNow } from '../support/qemu-spec.ts'

const WITHIN = { timeout: 300_000 }
const patienceMs = 250_000

const launcher = new Launcher()
let database: TestDatabase
let bench: QemuBench
let server: Program

beforeAll(async () => {
  bench = await makeBench()
  database = await createDatabase()
}, 300_000)
afterAll(async () => {
  await launcher.clear()
  await bench?.close()
  await database?.drop()
}, 60_000)

test(
  'on the qemu engine, a creation whose guest never boots fails with the last lines of its console',
  WITHIN,
  async () => {
    await start({ bootTimeoutS: 4 })
    const { source } = await hungImage(bench)
    await query(database.url, 'UPDATE images SET source = $1', [source])
    const { operation } = await api('POST', '/vms', vmBody('hung'))
    const { state, result } = await ended(operation.operation_id)
    expect(state).toBe('FAILED')
    expect(result).toMatchObject({ code: 'boot_failed' })
    expect((result as { message: string }).message).toMatch(
      /SSH did not respond within 4 s.*console ends with/s,
    )
    expect((await request('GET', `/vms/${operation.metadata.id}`)).status).toBe(404)
    expect(await qemuPids()).toEqual([])
    expect(await server.end('SIGTERM')).toBe(0)
  },
)

test(
  'on the qemu engine, the service creates a VM that accepts SSH, and finds it again after its server was killed',
  WITHIN,
  async () => {
    await start({ bootTimeoutS: 250 })
    const { operation } = await api('POST', '/vms', { ...vmBody('real_one'), startup_script: fakeNvidiaSmi })
    const created = await ended(operation.operation_id)
    expect(created).toMatchObject({ state: 'SUCCEEDED', result: { state: 'STATE_RUNNING' } })
    const { ssh_destination, ssh_host_keys } = created.result as RouteResponse<'vmGet'>
    expect(ssh_host_keys).toHaveLength(1)
    const [named, hostKey] = [ssh_host_keys[0]!.split(' ')[0], ssh_host_keys[0]!.replace(/^\S+ /, '')]
    const [address, port] = ssh_destination.replace(/^.*@/, '').split(':')
    expect(named).toBe(port ? `[${address}]:${port}` : address)
    expect(await bench.ssh(ssh_destination, 'hostname', { hostKey })).toBe('real-one')
    const other = newHostKey().publicKey
    await expect(bench.ssh(ssh_destination, 'hostname', { hostKey: other })).rejects.toThrow(
      /verification failed/,
    )
    expect(await query(database.url, 'SELECT ssh_host_key_sealed AS sealed FROM vms')).toEqual([
      { sealed: null },
    ])

    await copyFiles()
    await logInOnConsole(operation.metadata.id)
    await readGpuMetrics(operation.metadata.id, ssh_destination)

    const disk = await api('POST', '/disks', { name: 'data', size: '1GiB', location: 'local-a' })
    expect(await ended(disk.operation.operation_id)).toMatchObject({ state: 'SUCCEEDED' })
    const attachment = { disk_id: disk.operation.metadata.id, attachment_type: 'data', mode: 'read-write' }
    const attach = await api('POST', `/vms/${operation.metadata.id}/attach-disks`, {
      attach_disks: [attachment],
    })
    expect(await ended(attach.operation.operation_id)).toMatchObject({ state: 'SUCCEEDED' })

    await replaceGpus(operation.metadata.id, hostKey)

    const before = await qemuPids()
    expect(before).toHaveLength(1)
    await server.end('SIGKILL')
    // The guest detects a disk a moment after it was attached.
    const diskCount = () => bench.ssh(ssh_destination, 'ls /sys/block | grep -c vd')
    await eventually(async () => (await diskCount()) === '4', patienceMs)
    await start({ bootTimeoutS: 250 })
    expect(await qemuPids()).toEqual(before)
    expect(await stateOf(operation.metadata.id)).toBe('STATE_RUNNING')

    process.kill(before[0]!, 'SIGKILL')
    await eventually(async () => (await stateOf(operation.metadata.id)) === 'STATE_CRASHED', patienceMs)
    const deletion = await api('DELETE', `/vms/${operation.metadata.id}`)
    expect(await ended(deletion.operation.operation_id)).toMatchObject({ state: 'SUCCEEDED' })
    expect((await request('GET', `/vms/${operation.metadata.id}`)).status).toBe(404)
    expect(await server.end('SIGTERM')).toBe(0)
    await eventually(async () => (await bench.processes()).length === 0, patienceMs)
  },
)

test(
  'the members of a group on the qemu engine reach each other by name and know the host keys of all',
  WITHIN,
  async () => {
    await start({ bootTimeoutS: 250 })
    const { name: _, ...vm } = vmBody('unnamed')
    const startup_script = 'echo "rank $NODE_RANK of $NNODES" >/root/rank'
    const body = { name: 'trio', desired_count: 3, vm: { ...vm, startup_script } }
    const { operation } = await api('POST', '/instance-groups', body)
    expect(await ended(operation.operation_id)).toMatchObject({ state: 'SUCCEEDED' })
    const { items } = (await (await request('GET', '/vms')).json()) as RouteResponse<'vmList'>
    const members = items.toSorted((one, other) => (one.name < other.name ? -1 : 1))
    expect(new Set(members.map(({ started_at }) => started_at)).size).toBe(1)
    const keys = members.map(({ ssh_host_keys }) => ssh_host_keys[0]!.replace(/^\S+ /, ''))
    for (const [rank, { ssh_destination }] of members.entries()) {
      const run = (command: string) => bench.ssh(ssh_destination, command, { hostKey: keys[rank]! })
      for (const { name } of members)
        expect(await run(`ping -c 1 -W 20 ${name}`)).toContain('1 packets received')
      const known = (await run('cat /root/.ssh/known_hosts')).trim().split('\n')
      expect(known.map((line) => line.replace(/^\S+ /, ''))).toEqual(keys)
      expect(known.map((line) => line.split(',')[0])).toEqual(members.map(({ name }) => name))
      await eventually(async () => (await run('cat /root/rank')) === `rank ${rank} of 3`, patienceMs)
      expect(await run('. /run/slipway/group.env; echo $MASTER_ADDR')).toBe(
        members[0]!.network_interfaces[0]!.ips[0]!.private_ipv4.address,
      )
    }
    const deletion = await api('DELETE', `/instance-groups/${operation.metadata.id}`)
    expect(await ended(deletion.operation.operation_id)).toMatchObject({ state: 'SUCCEEDED' })
    expect(await server.end('SIGTERM')).toBe(0)
    await eventually(async () => (await bench.processes()).length === 0, patienceMs)
  },
)

async function start({ bootTimeoutS }: { bootTimeoutS: number }): Promise<void> {
  const file = join(bench.dataDir, 'slipway.toml')
  const range = `${bench.publicAddress.split('.').slice(0, 3).join('.')}.0/24`
  writeFileSync(
    file,
    `[[location]]\nname = "local-a"\nengine = "qemu"\n[location.qemu]\nscale = 0.002\n` +
      `address_range = "${range}"\nboot_timeout_s = ${bootTimeoutS}\n`,
  )
  // A relative path, as users type it.
  const dataDir = relative(launcher.dir, bench.dataDir)
  const args = ['--port', '0', '--data-dir', dataDir, '--config', file]
  server = launcher.start(args, { env: { DATABASE_URL: database.url } })
  await server.until(readyLine)
}

const vmBody = (name: string) => ({
  ...{ name, type: 'a100-80gb.1x', location: 'local-a', image: 'mini:latest' },
  ssh_public_key: bench.sshPublicKey,
})

/** Uses the system's scp, as `vm scp` does: to the guest and back, one file and a folder. */
async function copyFiles(): Promise<void> {
  const text = 'learning rate 0.001\n'
  const folder = join(bench.dataDir, 'sent')
  mkdirSync(folder)
  writeFileSync(join(folder, 'notes.txt'), text)
  for (const paths of [
    [join(folder, 'notes.txt'), 'real_one:single.txt'],
    ['-r', folder, 'real_one:all'],
    ['real_one:single.txt', join(folder, 'single.txt')],
    ['-r', 'real_one:all', join(folder, 'all')],
  ])
    expect(await slipway('vm', 'scp', '-i', bench.sshKeyFile, ...paths)).toMatchObject({ code: 0 })
  expect(readFileSync(join(folder, 'single.txt'), 'utf8')).toBe(text)
  expect(readFileSync(join(folder, 'all/notes.txt'), 'utf8')).toBe(text)
}

function slipway(...words: string[]) {
  const { api_url, access_key, project_id } = credentialsOf(bench.dataDir)
  const env = { SLIPWAY_API_URL: api_url, SLIPWAY_ACCESS_KEY: access_key, SLIPWAY_PROJECT: project_id }
  const program = join(root, 'packages/cli/bin/slipway.js')
  return startProgram(process.execPath, [program, ...words], { env, cwd: bench.dataDir }).ended()
}

function request(method: string, path: string, body?: unknown): Promise<Response> {
  const { api_url, access_key, project_id } = credentialsOf(bench.dataDir)
  const headers: Record<string, string> = { authorization: `Bearer ${access_key}` }
  if (body !== undefined) headers['content-type'] = 'application/json'
  const content = body === undefined ? {} : { body: JSON.stringify(body) }
  return fetch(`${api_url}/v0.1/projects/${project_id}${path}`, { method, headers, ...content })
}

async function api(method: string, path: string, body?: unknown): Promise<RouteResponse<'vmCreate'>> {
  const response = await request(method, path, body)
  const text = await response.text()
  if (!response.ok) throw new Error(`${method} ${path}: ${text}`)
  return JSON.parse(text)
}

async function ended(operationId: string): Promise<RouteResponse<'operationGet'>> {
  for (;;) {
    const response = await request('GET', `/operations/${operationId}?wait=30`)
    const operation = (await response.json()) as RouteResponse<'operationGet'>
    if (operation.state !== 'IN_PROGRESS') return operation
  }
}

async function stateOf(vmId: string): Promise<string> {
  return ((await (await request('GET', `/vms/${vmId}`)).json()) as { state: string }).state
}

async function qemuPids(): Promise<number[]> {
  const found = await bench.processes()
  return found.filter(({ commandLine }) => commandLine.startsWith('qemu-system')).map(({ pid }) => pid)
}

/** Moves the VM to other declared GPUs: the guest proves the same host key at the same address, with the same disks. */
async function replaceGpus(vmId: string, hostKey: string): Promise<void> {
  const gpus = () => query(database.url, 'SELECT id FROM gpus WHERE vm_id = $1', [vmId])
  const show = async () => (await (await request('GET', `/vms/${vmId}`)).json()) as RouteResponse<'vmGet'>
  const [vm, before] = [await show(), await gpus()]
  const { operation } = await api('PATCH', `/vms/${vmId}`, { action: 'REPLACE' })
  expect(await ended(operation.operation_id)).toMatchObject({ state: 'SUCCEEDED' })
  const { ssh_destination, disks, network_interfaces, ssh_host_keys } = await show()
  expect(network_interfaces).toEqual(vm.network_interfaces)
  expect(ssh_host_keys).toEqual(vm.ssh_host_keys)
  expect(disks.map(({ id }) => id)).toEqual(vm.disks.map(({ id }) => id))
  expect(await gpus()).not.toEqual(before)
  expect(await bench.ssh(ssh_destination, 'hostname', { hostKey })).toBe('real-one')
}

/** Logs in on the serial console, where no network is needed, and runs a command. */
async function logInOnConsole(vmId: string): Promise<void> {
  const response = await request('POST', `/vms/${vmId}/console`, { mode: 'write' })
  const { url } = (await response.json()) as RouteResponse<'vmConsoleCreate'>
  const socket = new WebSocket(url, 'slipway.console.v1')
  let output = ''
  socket.on('message', (data, isBinary) => {
    if (isBinary) output += String(data)
  })
  await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject))
  const type = (text: string) => socket.send(Buffer.from(text))
  type('\r')
  await eventually(() => /real-one login: $/.test(output), patienceMs)
  type('root\r')
  // The shell asks for the position of the cursor after its prompt.
  await eventually(() => output.includes('~ # '), patienceMs)
  type('echo $((6 * 7))-response\r')
  await eventually(() => output.includes('42-response'), patienceMs)
  // The log and the guest continue without a session.
  socket.close()
  await new Promise((resolve) => socket.once('close', resolve))
  const log = (await (await request('GET', `/vms/${vmId}/serial-log`)).json()) as { content: string }
  expect(log.content).toContain('42-response')
}

/** The load of the fake GPU is shown by the API and the scrape after the next sample. */
async function readGpuMetrics(vmId: string, destination: string): Promise<void> {
  await bench.ssh(destination, 'until [ -x /usr/bin/nvidia-smi ]; do sleep 1; done')
  await bench.ssh(destination, reportNow)
  const readPower = async () => {
    const response = await request('GET', `/vms/${vmId}/metrics?names=DCGM_FI_DEV_POWER_USAGE`)
    const { items } = (await response.json()) as RouteResponse<'vmMetrics'>
    return items[0]?.points.flatMap(([, value]) => value ?? [])
  }
  await eventually(async () => (await readPower()) !== undefined, patienceMs)
  expect(await readPower()).toContain(691.72)
  const text = await (await request('GET', '/metrics/scrape')).text()
  expect(text).toMatch(
    /^DCGM_FI_DEV_POWER_USAGE\{.*modelName="NVIDIA H200".*Hostname="real_one".*\} 691\.72$/m,
  )
}

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { RouteResponse } from '@slipway/contract'
import { query } from '@slipway/testing/database.ts'
import { eventually } from '@slipway/testing/eventually.ts'
import { credentialsOf } from '@slipway/testing/launcher.ts'
import { type Program, startProgram } from '@slipway/testing/program.ts'
import { root } from '@slipway/testing/root.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { newHostKey } from '../../src/domain/guest/host-key.ts'
import { QemuService } from '../support/qemu/service.ts'
import { hungImage, type QemuBench } from '../support/qemu-bench.ts'
import { fakeNvidiaSmi, reportNow } from '../support/qemu-spec.ts'

const WITHIN = { timeout: 300_000 }
const patienceMs = 250_000

let service: QemuService
let bench: QemuBench
let server: Program

beforeAll(async () => {
  service = await QemuService.open()
  bench = service.bench
}, 300_000)
afterAll(() => service?.close(), 60_000)

test(
  'on the qemu engine, a creation whose guest never boots fails with the last lines of its console',
  WITHIN,
  async () => {
    server = await service.start({ bootTimeoutS: 4 })
    const { source } = await hungImage(bench)
    await query(service.database.url, 'UPDATE images SET source = $1', [source])
    const accepted = await service.begin('POST', '/vms', service.vmBody('hung'))
    const { state, result } = await service.ended(accepted)
    expect(state).toBe('FAILED')
    expect(result).toMatchObject({ code: 'boot_failed' })
    expect((result as { message: string }).message).toMatch(
      /SSH did not respond within 4 s.*last lines of the serial console/s,
    )
    expect((await service.request('GET', `/vms/${accepted.operation.metadata.id}`)).status).toBe(404)
    expect(await qemuPids()).toEqual([])
    expect(await server.end('SIGTERM')).toBe(0)
  },
)

test(
  'on the qemu engine, the service creates a VM that accepts SSH, and finds it again after its server was killed',
  WITHIN,
  async () => {
    server = await service.start({ bootTimeoutS: 250 })
    const body = { ...service.vmBody('real_one'), startup_script: fakeNvidiaSmi }
    const id = await service.change('POST', '/vms', body)
    const { state, ssh_destination, ssh_host_keys } = await service.vm(id)
    expect(state).toBe('STATE_RUNNING')
    expect(ssh_host_keys).toHaveLength(1)
    const [named, hostKey] = [ssh_host_keys[0]!.split(' ')[0], ssh_host_keys[0]!.replace(/^\S+ /, '')]
    const [address, port] = ssh_destination.replace(/^.*@/, '').split(':')
    expect(named).toBe(port ? `[${address}]:${port}` : address)
    expect(await bench.ssh(ssh_destination, 'hostname', { hostKey })).toBe('real-one')
    const other = newHostKey().publicKey
    await expect(bench.ssh(ssh_destination, 'hostname', { hostKey: other })).rejects.toThrow(
      /verification failed/,
    )
    expect(await query(service.database.url, 'SELECT ssh_host_key_sealed AS sealed FROM vms')).toEqual([
      { sealed: null },
    ])

    await copyFiles()
    await logInOnConsole(id)
    await readGpuMetrics(id, ssh_destination)

    const disk = { name: 'data', size: '1GiB', location: 'local-a' }
    const disk_id = await service.change('POST', '/disks', disk)
    const attachment = { disk_id, attachment_type: 'data', mode: 'read-write' }
    await service.change('POST', `/vms/${id}/attach-disks`, { attach_disks: [attachment] })

    await replaceGpus(id, hostKey)

    const before = await qemuPids()
    expect(before).toHaveLength(1)
    await server.end('SIGKILL')
    // The guest detects a disk a moment after it was attached.
    const diskCount = () => bench.ssh(ssh_destination, 'ls /sys/block | grep -c vd')
    await eventually(async () => (await diskCount()) === '4', patienceMs)
    server = await service.start({ bootTimeoutS: 250 })
    expect(await qemuPids()).toEqual(before)
    expect((await service.vm(id)).state).toBe('STATE_RUNNING')

    process.kill(before[0]!, 'SIGKILL')
    await eventually(async () => (await service.vm(id)).state === 'STATE_CRASHED', patienceMs)
    await service.change('DELETE', `/vms/${id}`)
    expect((await service.request('GET', `/vms/${id}`)).status).toBe(404)
    expect(await server.end('SIGTERM')).toBe(0)
    await eventually(async () => (await bench.processes()).length === 0, patienceMs)
  },
)

test(
  'the members of a group on the qemu engine reach each other by name and know the host keys of all',
  WITHIN,
  async () => {
    server = await service.start({ bootTimeoutS: 250 })
    const { name: _, ...vm } = service.vmBody('unnamed')
    const startup_script = 'echo "rank $NODE_RANK of $NNODES" >/root/rank'
    const body = { name: 'trio', desired_count: 3, vm: { ...vm, startup_script } }
    const id = await service.change('POST', '/instance-groups', body)
    const { items } = await service.call<RouteResponse<'vmList'>>('GET', '/vms')
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
    await service.change('DELETE', `/instance-groups/${id}`)
    expect(await server.end('SIGTERM')).toBe(0)
    await eventually(async () => (await bench.processes()).length === 0, patienceMs)
  },
)

/** Copies a file and a folder to the guest and back with the system's scp, as `vm scp` does. */
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

async function qemuPids(): Promise<number[]> {
  const found = await bench.processes()
  return found.filter(({ commandLine }) => commandLine.startsWith('qemu-system')).map(({ pid }) => pid)
}

/** Moves the VM to other declared GPUs, and checks that its host key, address and disks are the same. */
async function replaceGpus(vmId: string, hostKey: string): Promise<void> {
  const gpus = () => query(service.database.url, 'SELECT id FROM gpus WHERE vm_id = $1', [vmId])
  const [vm, before] = [await service.vm(vmId), await gpus()]
  await service.change('PATCH', `/vms/${vmId}`, { action: 'REPLACE' })
  const { ssh_destination, disks, network_interfaces, ssh_host_keys } = await service.vm(vmId)
  expect(network_interfaces).toEqual(vm.network_interfaces)
  expect(ssh_host_keys).toEqual(vm.ssh_host_keys)
  expect(disks.map(({ id }) => id)).toEqual(vm.disks.map(({ id }) => id))
  expect(await gpus()).not.toEqual(before)
  expect(await bench.ssh(ssh_destination, 'hostname', { hostKey })).toBe('real-one')
}

/** Logs in on the serial console, where no network is needed, and runs a command. */
async function logInOnConsole(vmId: string): Promise<void> {
  const { socket, output, closed } = await service.openConsole(vmId, 'write')
  const type = (text: string) => socket.send(Buffer.from(text))
  type('\r')
  await eventually(() => /real-one login: $/.test(output()), patienceMs)
  type('root\r')
  // The shell asks for the position of the cursor after its prompt.
  await eventually(() => output().includes('~ # '), patienceMs)
  type('echo $((6 * 7))-response\r')
  await eventually(() => output().includes('42-response'), patienceMs)
  // The log and the guest continue without a session.
  socket.close()
  await closed
  const { content } = await service.call<RouteResponse<'vmSerialLog'>>('GET', `/vms/${vmId}/serial-log`)
  expect(content).toContain('42-response')
}

/** Checks that the API and the scrape show the load of the fake GPU after the next sample. */
async function readGpuMetrics(vmId: string, destination: string): Promise<void> {
  await bench.ssh(destination, 'until [ -x /usr/bin/nvidia-smi ]; do sleep 1; done')
  await bench.ssh(destination, reportNow)
  const readPower = async () => {
    const path = `/vms/${vmId}/metrics?names=DCGM_FI_DEV_POWER_USAGE`
    const { items } = await service.call<RouteResponse<'vmMetrics'>>('GET', path)
    return items[0]?.points.flatMap(([, value]) => value ?? [])
  }
  await eventually(async () => (await readPower()) !== undefined, patienceMs)
  expect(await readPower()).toContain(691.72)
  const text = await (await service.request('GET', '/metrics/scrape')).text()
  expect(text).toMatch(
    /^DCGM_FI_DEV_POWER_USAGE\{.*modelName="NVIDIA H200".*Hostname="real_one".*\} 691\.72$/m,
  )
}

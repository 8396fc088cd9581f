import { eventually } from '@slipway/testing/eventually.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { location, ProgramBench } from '../../support/incus/program-bench.ts'
import { makeKey } from '../../support/qemu-bench.ts'

const patienceMs = 120_000
let setup: ProgramBench
let keyFile: string
let sshPublicKey: string
beforeAll(async () => {
  setup = await ProgramBench.open(2)
  keyFile = setup.path('key')
  sshPublicKey = await makeKey(keyFile)
}, 300_000)
afterAll(() => setup?.close(), 60_000)

const newVm = (changes: Record<string, unknown> = {}) =>
  setup.newVm({ ssh_public_key: sshPublicKey, ...changes })

async function addressOf(vmId: string): Promise<string> {
  const { network_interfaces } = await setup.vm(vmId)
  return network_interfaces[0]!.ips[0]!.public_ipv4!.address
}

const ssh = async (vmId: string, command: string) => setup.ssh(await addressOf(vmId), command, { keyFile })

/** Reads the values that identify a guest. Its SSH server must prove the host key that the API shows. */
async function identityOf(vmId: string, privateKeyFile: string) {
  const { ssh_host_keys } = await setup.vm(vmId)
  const hostKey = ssh_host_keys[0]!.replace(/^\S+ /, '')
  const command = 'cat /root/precious /etc/machine-id'
  const output = await setup.ssh(await addressOf(vmId), command, { keyFile: privateKeyFile, hostKey })
  const [precious, machineId] = output.split('\n')
  expect(machineId).toMatch(/^[0-9a-f]{32}$/)
  return { precious, machineId, hostKey }
}

test('a VM from a custom image has the files of the image, but its own host key, machine id and SSH keys', async () => {
  const { resources } = setup
  await setup.placeOn('m1')
  const source = await newVm({ name: 'source' })
  await ssh(source, 'echo of the source >/root/precious')
  const before = await identityOf(source, keyFile)

  // Incus cannot freeze a guest, so the request must allow a crash-consistent image of a running VM.
  const body = { name: 'own:1', vm_id: source }
  expect(await resources.ended(await setup.ok('customImageCreate', { body }))).toMatchObject({
    ...{ state: 'FAILED', result: { code: 'conflict' } },
  })
  const live = { ...body, name: 'live:1', allow_crash_consistent: true }
  const liveId = await resources.succeeded(await setup.ok('customImageCreate', { body: live }))
  const show = (custom_image_id: string) => setup.ok('customImageGet', { params: { custom_image_id } })
  expect(await show(liveId)).toMatchObject({ state: 'available', consistency: 'crash' })

  await resources.succeeded(await resources.act(source, { action: 'STOP' }))
  const imageId = await resources.succeeded(await setup.ok('customImageCreate', { body }))
  expect(await show(imageId)).toMatchObject({ state: 'available', consistency: 'off', source_id: source })
  expect((await show(imageId)).stored_bytes).toBeGreaterThan(1024 ** 2)

  const otherKeyFile = setup.path('other-key')
  const otherKey = await makeKey(otherKeyFile)
  const created = { name: 'made', image: undefined, custom_image: 'own:1', ssh_public_key: otherKey }
  const copy = await newVm(created)
  const after = await identityOf(copy, otherKeyFile)
  expect(after.precious).toBe('of the source')
  expect(after.machineId).not.toBe(before.machineId)
  expect(after.hostKey).not.toBe(before.hostKey)
  await expect(ssh(copy, 'true')).rejects.toThrow(/denied|publickey/i)

  // The VM needs neither the images nor the VM that they were created from.
  for (const custom_image_id of [imageId, liveId])
    await resources.succeeded(await setup.ok('customImageDelete', { params: { custom_image_id } }))
  await resources.succeeded(await resources.removeVm(source))
  for (const action of ['STOP', 'START']) await resources.succeeded(await resources.act(copy, { action }))
  expect(await identityOf(copy, otherKeyFile)).toEqual(after)
  await resources.succeeded(await resources.removeVm(copy))
})

test('a snapshot of an attached disk contains no later writes, and can be restored to a larger disk without its source', async () => {
  const { resources } = setup
  await setup.placeOn('m1')
  const vm = await newVm()
  const diskId = await resources.newDisk({ size: '1GiB', location })
  await resources.succeeded(await resources.attach(vm, diskId))
  const folderOf = async (disk_id: string) =>
    `/mnt/${(await setup.ok('diskGet', { params: { disk_id } })).serial_number}`
  await ssh(vm, `echo early >${await folderOf(diskId)}/early; sync`)
  const body = { name: 'before', disk_id: diskId }
  const snapshotId = await resources.succeeded(await setup.ok('snapshotCreate', { body }))
  await ssh(vm, `echo late >${await folderOf(diskId)}/late; sync`)
  expect(await setup.ok('snapshotGet', { params: { snapshot_id: snapshotId } })).toMatchObject({
    ...{ state: 'available', consistency: 'crash', size: '1GiB' },
  })
  await resources.succeeded(await resources.detach(vm, diskId))
  await resources.succeeded(await resources.removeDisk(diskId))

  const restored = await resources.newDisk({ size: '2GiB', location, snapshot_id: snapshotId })
  await resources.succeeded(await resources.attach(vm, restored))
  expect(await ssh(vm, `ls ${await folderOf(restored)}`)).toBe('early')
  await resources.succeeded(await setup.ok('snapshotDelete', { params: { snapshot_id: snapshotId } }))
  expect(await ssh(vm, `cat ${await folderOf(restored)}/early`)).toBe('early')
  await resources.succeeded(await resources.removeVm(vm))
  await resources.succeeded(await resources.removeDisk(restored))
})

test('a reserved address moves to a VM on another member, survives its VMs, and leads to one VM at a time', async () => {
  const { resources, bench } = setup
  const [first, second] = bench.members
  const vmOn = async (member: string) => {
    await setup.placeOn(member)
    return newVm({ public_ip: 'none' })
  }
  const [here, there] = [await vmOn('m1'), await vmOn('m2')]
  const body = { name: 'front', location }
  const { id, address } = await setup.ok('addressCreate', { body })
  const nameAt = () => setup.ssh(address, 'hostname', { keyFile })
  const nameOf = async (vmId: string) => (await setup.vm(vmId)).name

  await resources.succeeded(await resources.assign(id, here))
  await eventually(async () => (await nameAt().catch(() => '')) === (await nameOf(here)), patienceMs)
  await resources.succeeded(await resources.assign(id, there))
  // Packets that still arrive at the first member reach no VM.
  expect(await bench.greeting(address, 22)).toBe('')
  // The filter can contain longer addresses that begin with this one.
  expect((await first!.packetFilter()).split(/[^\d.]+/)).not.toContain(address)
  await bench.routePublic(`${address}/32`, second!)
  await eventually(async () => (await nameAt().catch(() => '')) === (await nameOf(there)), patienceMs)
  expect((await setup.vm(there)).network_interfaces[0]!.ips[0]!.public_ipv4).toMatchObject({
    ...{ type: 'static', address, id },
  })

  await resources.succeeded(await resources.removeVm(there))
  expect(await setup.ok('addressGet', { params: { address_id: id } })).toMatchObject({ address, vm_id: '' })
  await setup.placeOn('m2')
  const successor = await newVm({ public_address_id: id })
  expect(await nameAt()).toBe(await nameOf(successor))
  for (const vmId of [here, successor]) await resources.succeeded(await resources.removeVm(vmId))
  await setup.ok('addressDelete', { params: { address_id: id } })
})

test('a user can log in on the serial console of a VM without a public address, more than once', async () => {
  await setup.placeOn('m2')
  const vm_id = await newVm({ name: 'mute', public_ip: 'none' })
  for (const session of [1, 2]) {
    let url = ''
    // The previous session ends shortly after its socket is closed.
    await eventually(async () => {
      const { status, body } = await setup.call('vmConsoleCreate', {
        params: { vm_id },
        body: { mode: 'write' },
      })
      if (status === 200) url = body.url
      return status === 200
    })
    const socket = new WebSocket(setup.reachable(url), 'slipway.console.v1')
    let output = ''
    socket.on('message', (data, isBinary) => {
      if (isBinary) output += String(data)
    })
    await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject))
    // Incus can lose what is typed before it is connected to the console, so the test types a line until it
    // gets a response.
    const type = (line: string, answer: RegExp) => {
      const from = output.length
      let typedAtMs = Number.NEGATIVE_INFINITY
      return eventually(() => {
        if (answer.test(output.slice(from))) return true
        if (performance.now() - typedAtMs < 5_000) return false
        typedAtMs = performance.now()
        socket.send(Buffer.from(`${line}\r`))
        return false
      }, patienceMs)
    }
    if (session === 1) {
      await type('', /mute login: $/)
      await type('root', /~ # /)
    }
    await type(`echo $((${session} * 42))-answer`, new RegExp(`${session * 42}-answer`))
    socket.close()
    await new Promise((resolve) => socket.once('close', resolve))
  }
  await setup.resources.succeeded(await setup.resources.removeVm(vm_id))
})

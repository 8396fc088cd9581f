import { once } from 'node:events'
import { appendFile, stat } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import type { RouteResponse } from '@slipway/contract'
import { query } from '@slipway/testing/database.ts'
import { eventually } from '@slipway/testing/eventually.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type OpenedConsole, QemuService } from '../support/qemu/service.ts'

const WITHIN = { timeout: 900_000 }
const patienceMs = 600_000
const visitPort = 8080
/** The size at which the engine drops the old part of a serial log. */
const maxLogBytes = 32 * 1024 * 1024

/** Sends the name of the guest to every client, and counts the clients. */
const startup_script = `#!/bin/sh
printf '#!/bin/sh\\necho visited >>/root/visits\\nhostname\\n' >/root/visit
chmod 755 /root/visit
: >/root/visits
while :; do nc -l -p ${visitPort} -e /root/visit; done </dev/null >/dev/null 2>&1 &
`

let service: QemuService
let one: string
let two: string

beforeAll(async () => {
  service = await QemuService.open()
  await service.start({ bootTimeoutS: 600 })
  const create = (name: string) => service.change('POST', '/vms', { ...service.vmBody(name), startup_script })
  const created = await Promise.all([create('one'), create('two')])
  ;[one, two] = created
  const { items } = await service.call<RouteResponse<'networkList'>>('GET', '/vpc/networks')
  await service.change('POST', '/vpc/firewall-rules', {
    ...{ name: 'visits', vpc_network_id: items[0]!.id, action: 'allow', direction: 'ingress' },
    ...{ protocols: ['tcp'], sources: [{ cidr: '127.0.0.0/8' }], destination_ports: [`${visitPort}`] },
    destinations: created.map((resource_id) => ({ resource_id })),
  })
}, 900_000)
afterAll(() => service?.close(), 60_000)

const publicAddressOf = async (vmId: string) =>
  (await service.vm(vmId)).network_interfaces[0]!.ips[0]!.public_ipv4

/** Runs a command in a guest, which must prove its own host key. */
async function inGuest(vmId: string, command: string, address?: string): Promise<string> {
  const { ssh_destination, ssh_host_keys } = await service.vm(vmId)
  const destination = address ? `root@${address}` : ssh_destination
  return service.bench.ssh(destination, command, { hostKey: ssh_host_keys[0]!.replace(/^\S+ /, '') })
}

const visitsOf = async (vmId: string) => Number(await inGuest(vmId, 'wc -l </root/visits'))

/** Returns the name of the guest that responds at this address; '' if none does. */
async function visit(address: string): Promise<string> {
  const socket = connect({ host: address, port: visitPort })
  let name = ''
  socket.on('data', (chunk) => {
    name += chunk
  })
  socket.on('error', () => {})
  // A guest that restarts its service may have accepted a connection that it never uses.
  socket.setTimeout(10_000, () => socket.destroy())
  await new Promise((resolve) => socket.once('close', resolve))
  return name.trim()
}

/** The service in the guest accepts one client at a time, so a visit is repeated until a guest responds. */
const nextVisit = (address: string) => eventually(() => visit(address), patienceMs)

/** Returns an SSH connection on which the guest has responded. */
async function openSsh(address: string): Promise<Socket> {
  const socket = connect({ host: address, port: 22 })
  await once(socket, 'data')
  socket.on('error', () => {})
  return socket
}

const isClosed = (socket: Socket) => new Promise((resolve) => socket.once('close', () => resolve(true)))

test('packets to a reserved address reach only the guest that has the address', WITHIN, async () => {
  const body = { name: 'front', location: 'local-a' }
  const reserved = await service.call<RouteResponse<'addressCreate'>>('POST', '/vpc/addresses', body)
  const { id, address } = reserved
  const change = (verb: 'assign' | 'unassign', vm_id?: string) =>
    service.change('POST', `/vpc/addresses/${id}/${verb}`, vm_id && { vm_id })

  await change('assign', one)
  expect(await publicAddressOf(one)).toMatchObject({ id, address, type: 'static' })
  expect(await nextVisit(address)).toBe('one')
  expect(await inGuest(one, 'hostname', address)).toBe('one')
  expect(await visitsOf(two)).toBe(0)

  // Without a VM, nothing listens at the address, and open connections are closed.
  const toOne = isClosed(await openSsh(address))
  await change('unassign')
  expect(await toOne).toBe(true)
  await expect(openSsh(address)).rejects.toThrow('ECONNREFUSED')
  expect(await visit(address)).toBe('')
  const dynamic = await publicAddressOf(one)
  expect(dynamic).toMatchObject({ type: 'dynamic' })
  expect(dynamic!.address).not.toBe(address)
  expect(await nextVisit(dynamic!.address)).toBe('one')

  const ofOne = await visitsOf(one)
  await change('assign', two)
  expect(await publicAddressOf(two)).toMatchObject({ id, address, type: 'static' })
  for (let count = 0; count < 5; count++) expect(await nextVisit(address)).toBe('two')
  expect(await inGuest(two, 'hostname', address)).toBe('two')
  await expect(inGuest(one, 'hostname', address)).rejects.toThrow(/verification failed/)
  expect(await visitsOf(one)).toBe(ofOne)

  // The address moves to the other VM while clients connect. After the first response of the new VM, none comes
  // from the old VM.
  const toTwo = isClosed(await openSsh(address))
  const moving = change('assign', one)
  const names: string[] = []
  while (names.at(-1) !== 'one') names.push(await nextVisit(address))
  await moving
  const ofTwo = await visitsOf(two)
  for (let count = 0; count < 5; count++) names.push(await nextVisit(address))
  expect(names.join(' ')).toMatch(/^(two )*one( one)*$/)
  expect(await toTwo).toBe(true)
  expect(await visitsOf(two)).toBe(ofTwo)
})

test(
  'a guest that prints without end neither waits for slow clients nor fills the disk',
  WITHIN,
  async () => {
    const file = join(service.bench.dataDir, 'qemu/local-a/vms', one, 'serial.log')
    const readLog = () => service.call<RouteResponse<'vmSerialLog'>>('GET', `/vms/${one}/serial-log`)
    // An emulated guest prints only 50 kB/s, so the test also appends to the log, as QEMU does. It waits for
    // the client that reads, because a client with more than 1 MiB of unsent output is too slow.
    const printMore = async (reader: OpenedConsole) => {
      const piece = Buffer.alloc(512 * 1024, 'more output\n')
      const before = reader.output().length
      await appendFile(file, piece)
      await eventually(() => reader.output().length >= before + piece.length, patienceMs)
    }
    /** Returns the number that the guest printed last, or 0 if the end of the log has none. */
    const lastNumber = async () => Number((await readLog()).content.match(/^\d+(?=\r?\n)/gm)?.at(-1) ?? 0)
    const hasEnded = async ({ sessionId }: OpenedConsole) => {
      const ofSession = `type = 'vm.console_closed' AND data ->> 'session_id' = $1`
      const text = `SELECT FROM events_written WHERE ${ofSession}`
      return (await query(service.database.url, text, [sessionId])).length > 0
    }

    const writer = await service.openConsole(one, 'write')
    const [slow, good] = [await service.openConsole(one, 'read'), await service.openConsole(one, 'read')]
    for (const { socket } of [writer, slow]) socket.pause()
    await inGuest(one, 'seq 1 1000000000 </dev/null >/dev/console 2>/dev/null &')
    const first = await eventually(lastNumber, patienceMs)
    while (!((await hasEnded(writer)) && (await hasEnded(slow)))) await printMore(good)
    for (const { socket, closed } of [writer, slow]) {
      socket.resume()
      // The connection is cut if the client does not read the close message either.
      expect([1006, 4008]).toContain(await closed)
    }

    // The guest continues to print while the log is shortened, and the other client receives it.
    while ((await readLog()).next_offset <= maxLogBytes) await printMore(good)
    await eventually(async () => (await stat(file)).size < maxLogBytes / 2, patienceMs)
    const later = await eventually(async () => {
      const number = await lastNumber()
      return number > first && number
    }, patienceMs)
    await eventually(async () => (await lastNumber()) > later, patienceMs)
    const seen = good.output().length
    await eventually(() => good.output().length > seen, patienceMs)
    expect(await hasEnded(good)).toBe(false)
    expect(await inGuest(one, 'kill $(pidof seq); hostname')).toBe('one')
    good.socket.close()
    await good.closed
  },
)

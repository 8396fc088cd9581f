import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { networkInterfaces, tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { CompiledRule } from '../../src/domain/firewall.ts'
import { Egress, mayReach } from '../../src/engines/qemu/forwarder/egress.ts'
import { GuestLink } from '../../src/engines/qemu/forwarder/guest-link.ts'
import { readIpv4, readTcp, tcpFlags, tcpFrame } from '../../src/engines/qemu/forwarder/packets.ts'
import { networkLimits } from '../../src/engines/qemu/forwarder/rate-limit.ts'

/** A hostile guest, simulated frame by frame: the test takes the place of QEMU. */
const guestMac = '0a:00:00:00:00:01'
const gateway = '100.127.255.2'
const everywhere: CompiledRule = {
  ...{ ruleId: 'out', action: 'allow', direction: 'egress', protocols: ['tcp', 'udp'] },
  ...{ peers: ['0.0.0.0/0'], sourcePorts: [], destinationPorts: [] },
}

let folder: string
let wire: Server
let qemu: Socket
let link: GuestLink
let secretService: Server
const egress = new Egress()
let accepted = 0

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'slipway-egress-'))
  wire = createServer().listen(join(folder, 'access.sock'))
  secretService = createServer((socket) => {
    accepted += 1
    socket.end('metadata')
  }).listen(0, '127.0.0.1')
  await Promise.all([once(wire, 'listening'), once(secretService, 'listening')])
  const connected = once(wire, 'connection')
  link = new GuestLink(join(folder, 'access.sock'), guestMac, egress, networkLimits(undefined))
  qemu = (await connected)[0] as Socket
})
afterAll(async () => {
  link?.close()
  egress.close()
  for (const server of [wire, secretService]) server?.close()
  await rm(folder, { recursive: true, force: true })
})

test('a guest cannot reach private, link-local or loopback addresses of the host unless they are listed', async () => {
  egress.update([], [everywhere])
  const { port } = secretService.address() as AddressInfo
  for (const address of ['169.254.169.254', '10.0.0.1', '172.16.0.1', '192.168.1.1', '100.64.0.1', gateway])
    expect([address, await connect(address, port)]).toEqual([address, 'refused'])
  expect(await connect('127.0.0.1', port)).toBe('refused')
  expect(accepted).toBe(0)
  egress.update(['127.0.0.1/32'], [everywhere])
  expect(await connect(gateway, port)).toBe('open')
  await expect.poll(() => accepted).toBe(1)
})

test('a guest reaches nothing if its rules allow no egress, or if its location allows none', async () => {
  const { port } = secretService.address() as AddressInfo
  const deny = { ...everywhere, ruleId: 'no', action: 'deny' as const }
  for (const rules of [[], [{ ...everywhere, peers: ['198.51.100.0/24'] }], [deny, everywhere]]) {
    egress.update(['127.0.0.0/8'], rules)
    expect(await connect(gateway, port)).toBe('refused')
  }
  egress.update(null, [everywhere])
  expect(await connect(gateway, port)).toBe('refused')
})

test('a guest reaches only public addresses, except those of the host itself', () => {
  expect(mayReach('9.9.9.9', [])).toBe(true)
  const special = ['0.0.0.0', '100.100.100.200', '192.0.0.192', '198.18.0.1', '224.0.0.1', '255.255.255.255']
  for (const address of special) expect([address, mayReach(address, [])]).toEqual([address, false])
  const own = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? [])
  for (const { address } of own) expect([address, mayReach(address, [])]).toEqual([address, false])
  expect(mayReach('10.1.2.3', ['10.1.0.0/16'])).toBe(true)
  expect(mayReach('10.2.2.3', ['10.1.0.0/16'])).toBe(false)
})

test('a guest cannot send packets with a source address other than its own', async () => {
  egress.update(['127.0.0.1/32'], [everywhere])
  const { port } = secretService.address() as AddressInfo
  const before = accepted
  sendSyn(gateway, port, 41_000, { source: '100.127.255.99' })
  sendSyn(gateway, port, 41_001, { mac: '0a:00:00:00:00:02' })
  expect(await connect(gateway, port)).toBe('open')
  await expect.poll(() => accepted).toBe(before + 1)
})

let nextPort = 42_000

/** Returns the outcome of a connection that the guest opens. */
async function connect(address: string, port: number): Promise<'open' | 'refused'> {
  const guestPort = nextPort++
  const answered = new Promise<'open' | 'refused'>((resolve) => {
    let pending = Buffer.alloc(0)
    const onData = (chunk: Buffer) => {
      pending = Buffer.concat([pending, chunk])
      while (pending.length >= 4 && pending.length >= 4 + pending.readUInt32BE(0)) {
        const frame = pending.subarray(4, 4 + pending.readUInt32BE(0))
        pending = pending.subarray(4 + frame.length)
        const packet = readIpv4(frame)
        const segment = packet && readTcp(packet)
        if (segment?.destinationPort !== guestPort) continue
        qemu.off('data', onData)
        resolve(segment.flags & tcpFlags.rst ? 'refused' : 'open')
      }
    }
    qemu.on('data', onData)
  })
  sendSyn(address, port, guestPort)
  return answered
}

function sendSyn(
  address: string,
  port: number,
  guestPort: number,
  { source = '100.127.255.15', mac = guestMac } = {},
): void {
  const bytes = (text: string) => Buffer.from(text.replaceAll(':', ''), 'hex')
  const addresses = { sourceMac: bytes(mac), destinationMac: bytes('02:53:4c:49:00:01') }
  const frame = tcpFrame(
    { ...addresses, source: numberOf(source), destination: numberOf(address) },
    {
      ...{ sourcePort: guestPort, destinationPort: port, sequence: 7, acknowledgement: 0 },
      ...{ flags: tcpFlags.syn, window: 65_535, payload: Buffer.alloc(0) },
    },
  )
  const length = Buffer.alloc(4)
  length.writeUInt32BE(frame.length)
  qemu.write(Buffer.concat([length, frame]))
}

function numberOf(address: string): number {
  return address.split('.').reduce((sum, byte) => sum * 256 + Number(byte), 0)
}

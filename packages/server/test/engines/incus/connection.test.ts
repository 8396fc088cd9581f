import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { eventually } from '@slipway/testing/eventually.ts'
import { afterEach, expect, test } from 'vitest'
import { IncusClient } from '../../../src/engines/incus/client.ts'
import { openConnections } from '../../../src/engines/incus/connections.ts'
import { createIncusEngine } from '../../../src/engines/incus/index.ts'
import { examine } from '../../../src/engines/incus/operate/doctor.ts'
import { incusConfig } from '../../support/incus/config.ts'
import { IncusStandIn } from '../../support/incus/stand-in.ts'

const signal = AbortSignal.timeout(600_000)
const fixture = (name: string) => join(import.meta.dirname, '../../support/fixtures/tls', name)
const read = (name: string) => readFileSync(fixture(name), 'utf8')
/** All members of a cluster show the same certificate, here the first. The second is the client's. */
const clusterTls = { cert: read('first.crt'), key: read('first.key'), ca: read('second.crt') }
const strangerTls = { cert: read('second.crt'), key: read('second.key'), ca: read('second.crt') }

const closings: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closings.splice(0).reverse()) await close()
})

async function standIn(tls: typeof clusterTls): Promise<IncusStandIn> {
  const incus = await new IncusStandIn(tls).open()
  closings.push(() => incus.close())
  return incus
}

const configOf = (...members: IncusStandIn[]) =>
  incusConfig({
    urls: members.map(({ url }) => url),
    client_cert_file: fixture('second.crt'),
    client_key_file: fixture('second.key'),
    server_cert_file: fixture('first.crt'),
  })

async function connect(...members: IncusStandIn[]): Promise<IncusClient> {
  const config = configOf(...members)
  const client = new IncusClient(await openConnections(config), config.project)
  closings.push(() => client.close())
  return client
}

test('calls continue with another member when one does not respond, and changes are sent once', async () => {
  const [first, second] = [await standIn(clusterTls), await standIn(clusterTls)]
  const client = await connect(first, second)
  await client.get('/1.0', { signal })
  expect([first.asked.length, second.asked.length]).toEqual([1, 0])
  await first.close()
  await client.get('/1.0', { signal })
  expect(second.asked).toHaveLength(1)
  // A change that a member received is not sent to another member, because it may have been made.
  second.recorded.set('POST /1.0/profiles', () => second.close())
  const third = await standIn(clusterTls)
  const other = await connect(second, third)
  await expect(other.change('POST', '/1.0/profiles', {}, { signal })).rejects.toMatchObject({
    kind: 'unavailable',
  })
  expect(third.asked).toEqual([])
  // A call without a response is repeated.
  third.recorded.set('POST /1.0/profiles', {})
  const late = await connect(first, third)
  await late.change('POST', '/1.0/profiles', {}, { signal })
  expect(third.asked).toMatchObject([{ method: 'POST', path: '/1.0/profiles' }])
})

test('requests stop using a member that accepts connections but does not respond, even if they already wait for it', async () => {
  const [hanging, other] = [await standIn(clusterTls), await standIn(clusterTls)]
  const client = await connect(hanging, other)
  for (const path of ['/', '/1.0', 'PUT /1.0/profiles/p'])
    hanging.recorded.set(path, () => new Promise(() => {}))
  const change = client.change('PUT', '/1.0/profiles/p', {}, { signal })
  const read = client.get('/1.0', { signal })
  // The change may have been made.
  await expect(change).rejects.toMatchObject({ kind: 'unavailable' })
  await read
  expect(other.asked.map(({ path }) => path)).toEqual(['/1.0'])
  await client.get('/1.0', { signal })
  expect(hanging.asked.filter(({ path }) => path === '/1.0')).toHaveLength(1)
})

test('a member that is only slow keeps its requests', async () => {
  const [slow, other] = [await standIn(clusterTls), await standIn(clusterTls)]
  slow.recorded.set('/', {})
  slow.recorded.set('/1.0', () => sleep(1_500, {}))
  await (await connect(slow, other)).get('/1.0', { signal })
  expect(other.asked).toEqual([])
})

test('new requests avoid a member that responds slowly, even after it has responded', async () => {
  const [slow, other] = [await standIn(clusterTls), await standIn(clusterTls)]
  const client = await connect(slow, other)
  let release = () => {}
  const released = new Promise<void>((resolve) => {
    release = resolve
  })
  slow.recorded.set('/', () => sleep(1_000, {}))
  slow.recorded.set('/1.0', () => released.then(() => ({})))
  const early = client.get('/1.0', { signal })
  await eventually(async () => {
    await client.text('/1.0/other', { signal }).catch(() => {})
    return other.asked.length > 0
  })
  release()
  await early
  slow.asked.splice(0)
  await client.get('/1.0', { signal })
  expect(slow.asked).toEqual([])
})

test('waiting for an operation that Incus never finishes ends at a time limit', async () => {
  const incus = await standIn(clusterTls)
  incus.recorded.set('POST /1.0/instances', { operation: '/1.0/operations/1?project=slipway' })
  incus.recorded.set('/1.0/operations/1/wait', { status_code: 103, err: '' })
  const creation = (await connect(incus)).change('POST', '/1.0/instances', {}, { signal, operationMs: 50 })
  await expect(creation).rejects.toMatchObject({
    kind: 'unavailable',
    message: expect.stringMatching(/did not finish/),
  })
})

test('a server whose certificate is not the pinned one receives no request', async () => {
  const [stranger, member] = [await standIn(strangerTls), await standIn(clusterTls)]
  await expect((await connect(stranger)).get('/1.0', { signal })).rejects.toMatchObject({
    kind: 'unavailable',
  })
  await (await connect(stranger, member)).get('/1.0', { signal })
  expect([stranger.asked.length, member.asked.length]).toEqual([0, 1])
})

test('doctor reports which URL is dead, which server has a different certificate, and that trust was revoked', async () => {
  const [dead, stranger, member] = [
    await standIn(clusterTls),
    await standIn(strangerTls),
    await standIn(clusterTls),
  ]
  member.recorded.set('/1.0', { auth: 'untrusted' })
  await dead.close()
  const dir = await mkdtemp(join(tmpdir(), 'swi-'))
  closings.push(() => rm(dir, { recursive: true }))
  const clientKeyFile = join(dir, 'key')
  await writeFile(clientKeyFile, read('second.key'), { mode: 0o600 })
  const incus = { ...configOf(dead, stranger, member), clientKeyFile }
  const place = { name: 'gpu-a', description: '', engine: 'incus', storage: 'local', publicIpv4: '' } as const
  const findings = await examine({ ...place, incus }, { sys: '/nowhere', proc: '/nowhere', programs: [] })
  const found = (step: string) => findings.find((finding) => finding.step === step)
  expect(found(`URL ${dead.url}`)).toMatchObject({
    ...{ verdict: 'problem', text: expect.stringContaining('ECONNREFUSED') },
    fixes: [expect.stringContaining('systemctl status incus')],
  })
  expect(found(`URL ${stranger.url}`)).toMatchObject({
    ...{ verdict: 'problem', fixes: [expect.stringContaining('server_cert_file')] },
  })
  expect(found(`URL ${member.url}`)).toMatchObject({ verdict: 'ok' })
  expect(found('daemon')).toMatchObject({
    ...{ verdict: 'problem', fixes: [expect.stringContaining('incus config trust add-certificate')] },
  })
})

test('events are received, and after a gap every VM is reported as changed', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'swi-'))
  closings.push(() => rm(dir, { recursive: true }))
  const incus = await new IncusStandIn().open(join(dir, 'socket'))
  closings.push(() => incus.close())
  incus.recorded.set('/1.0/instances', ['/1.0/instances/vm-one?project=slipway', '/1.0/instances/vm-two'])
  const engine = await createIncusEngine({ config: incusConfig({ socket: join(dir, 'socket') }) })
  closings.push(() => engine.close())
  const changed: string[] = []
  engine.watch((vmId) => changed.push(vmId))
  await eventually(() => incus.listenerCount === 1)
  incus.tell({ type: 'lifecycle', metadata: { source: '/1.0/instances/vm-three?project=slipway' } })
  await eventually(() => changed.length > 0)
  expect(changed.splice(0)).toEqual(['three'])
  incus.hangUp()
  await eventually(() => changed.length === 2)
  expect(changed).toEqual(['one', 'two'])
  expect(incus.listenerCount).toBe(1)
})

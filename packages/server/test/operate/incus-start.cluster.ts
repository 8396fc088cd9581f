import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { eventually } from '@slipway/testing/eventually.ts'
import { credentialsOf, Launcher, readyLine, serverProgram } from '@slipway/testing/launcher.ts'
import { root } from '@slipway/testing/root.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { IncusClient } from '../../src/engines/incus/client.ts'
import { openConnections } from '../../src/engines/incus/connections.ts'
import { IncusBench, type IncusMember } from '../support/incus-bench.ts'

const exec = promisify(execFile)
const launcher = new Launcher()
const dataDir = launcher.newDataDir()
let bench: IncusBench
let member: IncusMember

beforeAll(async () => {
  bench = await IncusBench.open(1)
  member = bench.members[0]!
  await member.preseed('storage_pools: [{name: default, driver: dir}]\n')
}, 120_000)
afterAll(async () => {
  await launcher.clear()
  await bench?.close()
}, 60_000)

/** Runs the command in namespaces in which the test's daemon is the Incus server of the machine. */
const withDaemon = (command: string[], cwd: string) =>
  launcher.run(
    'unshare',
    [
      ...['--mount', '--propagation', 'private', 'sh', '-c'],
      ...[`mount --bind ${member.dir} /var/lib/incus && exec "$@"`, 'sh', ...command],
    ],
    { cwd },
  )
const images = (...args: string[]) =>
  withDaemon(
    [process.execPath, serverProgram, 'images', ...args, '--data-dir', dataDir],
    launcher.dir,
  ).ended()

async function api(method: string, path: string, body?: unknown) {
  const { api_url, operator_key } = credentialsOf(dataDir)
  const response = await fetch(`${api_url}/v0.1/admin${path}`, {
    method,
    headers: { authorization: `Bearer ${operator_key}`, 'content-type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  return { status: response.status, body: (await response.json()) as { items: unknown[] } }
}

/** Sorts the images and their aliases, because Incus lists both in any order. */
const imageList = async () => {
  const images = JSON.parse(await member.cli('query', '/1.0/images?recursion=1&project=slipway')) as {
    fingerprint: string
    type: string
    uploaded_at: string
    aliases: { name: string }[]
  }[]
  for (const { aliases } of images) aliases.sort((a, b) => a.name.localeCompare(b.name))
  return images.sort((a, b) => a.fingerprint.localeCompare(b.fingerprint))
}

test('npm start runs on the Incus server of this machine, which is a host of its only location', async () => {
  const command = ['npm', 'start', '--', '--engine', 'incus', '--port', '0', '--data-dir', dataDir]
  await withDaemon(command, root).until(readyLine)
  const host = await eventually(async () => (await api('GET', '/hosts')).body.items[0], 60_000)
  expect(host).toMatchObject({
    ...{ name: 'm1', location: 'local-a', engine: 'incus', state: 'up' },
    capabilities: { guests: 'virtual-machine' },
  })
})

test('a disk image is imported into Incus once under its name, and only such images can be used', async () => {
  const file = join(launcher.dir, 'disk.qcow2')
  await exec('qemu-img', ['create', '-q', '-f', 'qcow2', file, '1G'])
  const sha256 = createHash('sha256')
    .update(await readFile(file))
    .digest('hex')
  const take = () => images('import', file, '--sha256', sha256, '--format', 'qcow2', '--name', 'disk:1')
  expect(await take()).toMatchObject({ code: 0, output: 'disk:1 is available in local-a\n' })
  const [image, ...others] = await imageList()
  expect(others).toEqual([])
  expect(image).toMatchObject({ type: 'virtual-machine', aliases: [{ name: 'disk:1' }] })

  expect(await take()).toMatchObject({ code: 0 })
  expect(await imageList()).toEqual([image])

  const body = (source: object) => ({ name: 'other:1', locations: ['local-a'], source })
  for (const source of [{ alias: 'disk:1' }, { fingerprint: image!.fingerprint.slice(0, 12) }, {}])
    expect((await api('POST', '/images', body(source))).status).toBe(400)
  const { fingerprint } = image!
  expect((await api('POST', '/images', body({ fingerprint }))).status).toBe(200)
})

test('a name refers to the image that was imported last, and a raw image is converted for Incus', async () => {
  const file = join(launcher.dir, 'disk.raw')
  await writeFile(file, Buffer.alloc(1024 * 1024, 7))
  const sha256 = createHash('sha256')
    .update(await readFile(file))
    .digest('hex')
  expect(
    await images('import', file, '--sha256', sha256, '--format', 'raw', '--name', 'disk:1'),
  ).toMatchObject({ code: 0 })
  const named = (await imageList()).map(({ aliases }) => aliases.map(({ name }) => name))
  expect(named.toSorted()).toEqual([[], ['disk:1']])
  const left = await readdir(join(dataDir, 'qemu/images'))
  expect(left.filter((name) => !/^[0-9a-f]{64}\.img$/.test(name))).toEqual([])
})

test('an image that was added to Incus by hand is adopted unchanged by its alias', async () => {
  const { fingerprint } = (await imageList()).find(({ aliases }) => aliases.length === 1)!
  await member.cli('--project', 'slipway', 'image', 'alias', 'create', 'local:theirs:1', fingerprint)
  expect(await images('adopt', 'theirs:1')).toMatchObject({ output: 'theirs:1 is available in local-a\n' })
  const { code, errors } = await images('adopt', 'nobodys:1')
  expect([code, errors]).toEqual([1, expect.stringContaining('has no image with the alias nobodys:1')])
})

test('an upload that is interrupted or does not match its checksum leaves nothing in Incus', async () => {
  const before = await imageList()
  const client = new IncusClient(await openConnections(bench.config()), 'slipway')
  const files = () => readdir(join(member.dir, 'images'))
  const filesBefore = await files()
  const headers = { 'content-type': 'multipart/form-data; boundary=b', 'x-incus-fingerprint': '0'.repeat(64) }
  const send = (end: () => void) =>
    client.change(
      'POST',
      '/1.0/images',
      {
        headers,
        async *content() {
          yield Buffer.alloc(1024 * 1024)
          end()
        },
      },
      { signal: AbortSignal.timeout(60_000) },
    )
  const cut = () => {
    throw new Error('cut off')
  }
  await expect(send(cut)).rejects.toThrow(/cut off/)
  await expect(send(() => {})).rejects.toThrow()
  expect(await imageList()).toEqual(before)
  await eventually(async () => (await files()).length === filesBefore.length, 60_000)
  await client.close()
})

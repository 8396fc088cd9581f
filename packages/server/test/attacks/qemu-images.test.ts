import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cp, mkdtemp, open, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { VmSpec } from '../../src/engines/engine.ts'
import { growImage } from '../../src/engines/qemu/disks/disk-files.ts'
import { describeFile } from '../../src/engines/qemu/images/image-header.ts'
import { osBaseOf } from '../../src/engines/qemu/images/images.ts'
import { importImage } from '../../src/engines/qemu/index.ts'
import { StatePaths } from '../../src/engines/qemu/paths.ts'
import { VmRecords } from '../../src/engines/qemu/vm-records.ts'

const secret = 'root:$6$secret'
const signal = AbortSignal.timeout(600_000)
let service: TestService
let dataDir: string
let images: string
let secretFile: string

beforeAll(async () => {
  service = await startService((config) => {
    config.server.role = 'api'
  })
  await service.sql(`UPDATE locations SET engine = 'qemu' WHERE name = 'us-west1-a'`)
  dataDir = await mkdtemp(join(tmpdir(), 'slipway-attack-'))
  images = join(dataDir, 'qemu/images')
  secretFile = join(dataDir, 'shadow')
  await writeFile(secretFile, secret)
  const plain = await createCrafted('plain.qcow2')
  await importImage(dataDir, plain, await sha256(plain), 'plain', 'qcow2', () => {})
})
afterAll(async () => {
  await service?.close()
  await rm(dataDir, { recursive: true, force: true })
})

/** Checks the image of a VM in the same way as the start of the VM does. */
function osBase(source: object, name: string) {
  const records = new VmRecords(new StatePaths(dataDir, 'local-a'))
  const spec = { id: 'vm-1', image: { name, source }, osDiskGib: 1 } as VmSpec
  return osBaseOf({ options: { dataDir } as never, records }, spec)
}

const create = (body: object) =>
  service.call('adminImageCreate', { token: service.credentials.operator_key, body })

test('the API rejects images with a path, an unregistered file or an invalid source', async () => {
  const sources = [
    { kind: 'disk', file: '../../../../etc/shadow', format: 'raw', sha256: '0'.repeat(64) },
    { kind: 'disk', file: '/etc/shadow' },
    { kind: 'mini', folder: '..' },
    { kind: 'disk', file: 'shadow.img', sha256: '0'.repeat(64) },
    { kind: 'disk', file: ['a'] },
    { kind: 'disk', file: { $ne: '' } },
    {},
  ]
  for (const source of sources) {
    const response = await create({ name: 'evil:latest', locations: ['us-west1-a'], source })
    expect([response.status, JSON.stringify(source)]).toEqual([400, JSON.stringify(source)])
  }
})

test('an unregistered image cannot be added through another location', async () => {
  for (const source of [{ kind: 'disk', file: 'shadow.img' }, {}]) {
    const name = `alias-${Object.keys(source).length}:latest`
    const response = await create({ name, locations: ['us-east1-a'], source })
    expect(response.status).toBe(200)
    const moved = await service.call('adminImageUpdate', {
      token: service.credentials.operator_key,
      params: { image_id: response.body.id },
      body: { locations: ['us-west1-a'] },
    })
    expect(moved.status).toBe(400)
    expect((await create({ name: 'second:latest', locations: ['us-west1-a'], source })).status).toBe(400)
  }
})

test('a registered image can get a second name with only its file, and the alias keeps the full source', async () => {
  const source = { kind: 'disk', file: `${'a'.repeat(64)}.img`, sha256: 'a'.repeat(64), format: 'qcow2' }
  await service.sql(`UPDATE images SET source = $1, is_registered = true WHERE name = 'debian12:latest'`, [
    source,
  ])
  const body = { name: 'alias:latest', locations: ['us-west1-a'], source: { file: source.file } }
  expect((await create(body)).status).toBe(200)
  const [row] = await service.sql(`SELECT source FROM images WHERE name = 'alias:latest'`)
  expect(row).toEqual({ source })
})

test('an image row that names a file outside the images folder opens no file of the host', async () => {
  await symlink(secretFile, join(images, `${await sha256(secretFile)}.img`))
  await symlink(dataDir, join(images, 'mini-link'))
  const sums = { kernelSha256: '', initrdSha256: '', osSha256: '' }
  const hostile: object[] = [
    { kind: 'disk', file: '../../shadow', sha256: await sha256(secretFile), format: 'raw' },
    { kind: 'disk', file: secretFile, sha256: await sha256(secretFile), format: 'raw' },
    { kind: 'disk', file: `${await sha256(secretFile)}.img`, sha256: await sha256(secretFile) },
    { kind: 'disk', file: 'mini.json', sha256: await sha256(secretFile) },
    { kind: 'mini', folder: '..', ...sums },
    { kind: 'mini', folder: 'mini-link', ...sums },
    { kind: 'mini', folder: { toString: 1 }, ...sums },
    { kind: 'else' },
    {},
  ]
  for (const source of hostile)
    await expect(osBase(source, 'evil')).rejects.toMatchObject({
      kind: 'rejected',
      message: expect.not.stringContaining(dataDir),
    })
})

test('a crafted image that refers to a file of the host is rejected at import and before every use', async () => {
  const pointing = {
    backing: await createCrafted('backing.qcow2', '-b', secretFile, '-F', 'raw'),
    json: await jsonBacking(),
    data: await createCrafted('data.qcow2', '-o', `data_file=${join(dataDir, 'data.raw')}`),
  }
  for (const [kind, file] of Object.entries(pointing)) {
    const sum = await sha256(file)
    const imported = importImage(dataDir, file, sum, kind, 'qcow2', () => {})
    await expect(imported).rejects.toThrow('refers to another file')
    await cp(file, join(images, `${sum}.img`))
    const source = { kind: 'disk', file: `${sum}.img`, sha256: sum, format: 'qcow2' }
    await expect(osBase(source, kind)).rejects.toThrow('refers to another file')
  }
})

test('a disk whose header was rewritten by a compromised QEMU is not opened with the rights of the server', async () => {
  const disk = await createCrafted('disk.qcow2', '-o', `data_file=${join(dataDir, 'elsewhere.raw')}`)
  await expect(growImage(disk, 2, signal)).rejects.toThrow('refers to another file')
  await symlink(secretFile, join(dataDir, 'linked.qcow2'))
  await expect(growImage(join(dataDir, 'linked.qcow2'), 2, signal)).rejects.toThrow('link')
  expect(await readFile(secretFile, 'utf8')).toBe(secret)
})

test('the format of an image is specified, and an image that begins like another format is rejected', async () => {
  const raw = join(dataDir, 'raw.img')
  await writeFile(raw, Buffer.alloc(1024 ** 2))
  const qcow2 = await createCrafted('ok.qcow2')
  expect(await describeFile(raw, 'raw')).toEqual({ format: 'raw', virtualSizeGib: 1 })
  expect(await describeFile(qcow2, 'qcow2')).toEqual({ format: 'qcow2', virtualSizeGib: 1 })
  await expect(describeFile(qcow2, 'raw')).rejects.toThrow('is not raw, but qcow2')
  await expect(describeFile(raw, 'qcow2')).rejects.toThrow('is not qcow2')
  await writeFile(raw, '# Disk DescriptorFile\nversion=1\n"/etc/shadow" FLAT')
  await expect(describeFile(raw, 'raw')).rejects.toThrow('qcow2 or raw')
})

async function createCrafted(name: string, ...options: string[]): Promise<string> {
  const file = join(dataDir, name)
  execFileSync('qemu-img', ['create', '-q', '-f', 'qcow2', ...options, file, '1G'])
  return file
}

/** Creates an image whose backing file is in QEMU's own notation, which a path check would not notice. */
async function jsonBacking(): Promise<string> {
  const file = await createCrafted('json.qcow2')
  const name = `json:{"driver":"raw","file":{"driver":"file","filename":"${secretFile}"}}`
  const handle = await open(file, 'r+')
  const offset = Buffer.alloc(12)
  offset.writeBigUInt64BE(1024n)
  offset.writeUInt32BE(name.length, 8)
  await handle.write(offset, 0, 12, 8)
  await handle.write(name, 1024)
  await handle.close()
  return file
}

async function sha256(file: string): Promise<string> {
  return createHash('sha256')
    .update(await readFile(file))
    .digest('hex')
}

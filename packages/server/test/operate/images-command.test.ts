import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createDatabase, query } from '@slipway/testing/database.ts'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { hostArchitecture } from '../../src/engines/qemu/architecture.ts'
import { setUpScript } from '../../src/engines/qemu/gpu-image/recipe.ts'
import { runImagesCommand } from '../../src/images-command.ts'
import type { ImageRow } from '../../src/store/fleet/images.ts'
import { imageView } from '../../src/views/catalogue.ts'

let folder: string
const printed: string[] = []
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'slipway-images-'))
  printed.length = 0
  vi.spyOn(console, 'log').mockImplementation((line) => void printed.push(line))
  vi.spyOn(console, 'error').mockImplementation(() => {})
})
afterEach(() => {
  vi.restoreAllMocks()
  vi.unstubAllEnvs()
  rmSync(folder, { recursive: true, force: true })
})

test('an image is imported with its tags, and a second import adds tags', async () => {
  const { url, drop } = await createDatabase()
  vi.stubEnv('DATABASE_URL', url)
  await query(
    url,
    `INSERT INTO locations (name, region, zone, engine, storage, position)
     VALUES ('hall-a', 'hall', 'a', 'qemu', 'local', 0)`,
  )
  const file = join(folder, 'own.raw')
  const content = Buffer.alloc(1024 ** 2, 'a disk')
  writeFileSync(file, content)
  const sha256 = createHash('sha256').update(content).digest('hex')
  const take = (...tags: string[]) =>
    runImagesCommand([
      ...['import', file, '--sha256', sha256, '--format', 'raw', '--name', 'own:1', '--data-dir', folder],
      ...tags.flatMap((tag) => ['--tag', tag]),
    ])
  const tags = async () => (await query<{ tags: string[] }>(url, 'SELECT tags FROM images'))[0]?.tags

  await expect(take('with space')).rejects.toThrow('"with space" is not a valid tag')
  await take()
  expect(printed).toEqual(['own:1 is available in hall-a'])
  expect(await tags()).toEqual(['imported', 'cloud-init'])
  const [image] = await query<ImageRow>(url, 'SELECT * FROM images')
  expect(imageView(image!).size_bytes).toBe(1024 ** 2)
  await take('slipway-guest', 'imported')
  expect(await tags()).toEqual(['imported', 'cloud-init', 'slipway-guest'])
  await drop()
})

test.each([
  ['--mirror', 'http://mirror.example bookworm main'],
  ['--mirror', 'ftp://mirror.example/debian'],
  ['--security-mirror', 'http://mirror.example/[trusted=yes]'],
  ['--suite', '../bookworm'],
  ['--package', 'a,b'],
  ['--package', 'a b'],
])('the gpu image is not built with %s %s', async (flag, value) => {
  await expect(runImagesCommand(['build', 'gpu', flag, value])).rejects.toThrow(
    `${flag} ${JSON.stringify(value)} has an invalid format`,
  )
})

test('without the programs that it needs, the gpu image is not built, and the message says what to install', async () => {
  vi.stubEnv('PATH', folder)
  await expect(runImagesCommand(['build', 'gpu'])).rejects.toThrow(
    /cannot be built without mmdebstrap, qemu-utils.*apt-get install mmdebstrap qemu-utils/,
  )
})

test('a user who cannot create a user namespace gets an error before the gpu image is built', async () => {
  for (const program of ['mmdebstrap', 'qemu-img', 'mkfs.ext4', 'mkfs.vfat', 'mcopy', 'sfdisk', 'apt-get'])
    writeProgram(program, 'echo "this program must not run" >&2\nexit 1')
  writeProgram('unshare', `echo 'unshare: no line matching user "ada" in /etc/subuid' >&2\nexit 1`)
  vi.stubEnv('PATH', `${folder}:${process.env.PATH}`)
  vi.spyOn(process, 'getuid').mockReturnValue(1_000)
  const output = join(folder, 'gpu.qcow2')
  await expect(runImagesCommand(['build', 'gpu', '--output', output])).rejects.toThrow(
    /^the gpu image .* user namespace \(unshare: no line .* in \/etc\/subuid\)\. Run the command as root, or .*uidmap.*$/,
  )
})

function writeProgram(name: string, script: string): void {
  writeFileSync(join(folder, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 })
}

test('the script that sets the gpu image up has valid syntax', () => {
  for (const hasDriver of [true, false]) {
    const script = setUpScript(hostArchitecture(), { hasDriver, hasToolkit: false, packages: [] }, true)
    execFileSync('sh', ['-n'], { input: script })
  }
})

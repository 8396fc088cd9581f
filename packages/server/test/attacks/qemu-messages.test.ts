import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { redactedTail, run } from '../../src/engines/qemu/command.ts'
import { withQmp } from '../../src/engines/qemu/process/qmp.ts'

test('output of host programs is shown to tenants without the folders of its files', () => {
  const message = `qemu-system-x86_64: -blockdev {"filename":"/srv/slipway/qemu/a/vms/1/os.qcow2"}: Could not open '/srv/slipway/qemu/images/ab.img': No such file`
  expect(redactedTail(message)).toBe(
    `qemu-system-x86_64: -blockdev {"filename":"os.qcow2"}: Could not open 'ab.img': No such file`,
  )
  expect(redactedTail('7/8 of 10/s at 1/2')).toBe('7/8 of 10/s at 1/2')
})

test('error messages of the qemu engine contain no host paths', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'slipway-messages-'))
  const file = join(folder, 'text.qcow2')
  await writeFile(file, 'no image')
  const failures = [
    () => run('qemu-img', ['check', '-f', 'qcow2', file]),
    () => run('qemu-img', ['create', '-f', 'qcow2', join(folder, 'no/such/folder.qcow2'), '1G']),
    () => withQmp(join(folder, 'qmp.sock'), 1_000, async () => {}),
  ]
  for (const failure of failures)
    await expect(failure()).rejects.toMatchObject({ message: expect.not.stringContaining(folder) })
  await rm(folder, { recursive: true })
})

import { execFile } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { hostArchitecture } from '../../../src/engines/qemu/architecture.ts'
import { DebianPackages } from '../../../src/engines/qemu/mini-guest/debian-packages.ts'
import { guestPackages } from '../../../src/engines/qemu/mini-guest/files.ts'
import { cachedFile, guestFiles, makeGuestRoot } from './incus-guest.ts'

const exec = promisify(execFile)

const metadata = `architecture: ${process.arch === 'arm64' ? 'aarch64' : 'x86_64'}
creation_date: 1700000000
properties:
  description: Slipway test guest
templates:
  /etc/slipway/user-data:
    when: [create, copy, start]
    template: user-data.tpl
  /etc/slipway/vendor-data:
    when: [create, copy, start]
    template: vendor-data.tpl
`
const templateOf = (kind: string) =>
  `{% autoescape off %}{{ config_get("cloud-init.${kind}", "") }}{% endautoescape %}`

/** A script shows the login prompt, because `getty` cannot use the console, which belongs to the session of init. */
const files = {
  ...guestFiles,
  'etc/inittab': `${guestFiles['etc/inittab']}::respawn:/etc/slipway/console\n`,
  'etc/slipway/console': `#!/bin/sh
exec </dev/console >/dev/console 2>&1
while [ -z "$name" ]; do
  printf '%s login: ' "$(hostname)"
  read -r name || exit
done
exec login -f "$name"
`,
}

/** Returns the tarball of a container image with busybox and dropbear, built once from Debian packages. */
export const testImage = (): Promise<string> =>
  cachedFile('guest.tar', [files, metadata, templateOf('')], async (work, target) => {
    const packages = new DebianPackages(work, hostArchitecture().debianName)
    await packages.refreshListsIfMissing('dropbear-bin')
    await packages.unpack(guestPackages, join(work, 'unpacked'))
    await makeGuestRoot(join(work, 'unpacked'), join(work, 'image/rootfs'), files)
    await mkdir(join(work, 'image/templates'))
    for (const kind of ['user-data', 'vendor-data'])
      await writeFile(join(work, `image/templates/${kind}.tpl`), templateOf(kind))
    await writeFile(join(work, 'image/metadata.yaml'), metadata)
    await exec('tar', ['-C', join(work, 'image'), '--owner=0', '--group=0', '-cf', target, '.'])
  })

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { hostArchitecture } from '../../../src/engines/qemu/architecture.ts'
import { cpioArchive } from '../../../src/engines/qemu/mini-guest/cpio.ts'
import { DebianPackages } from '../../../src/engines/qemu/mini-guest/debian-packages.ts'
import { guestModules, guestPackages } from '../../../src/engines/qemu/mini-guest/files.ts'
import { initramfsTree } from '../../../src/engines/qemu/mini-guest/tree.ts'
import { cachedFile, guestFiles, makeGuestRoot } from './incus-guest.ts'
import { uefiImage } from './uefi-image.ts'

const rootMib = 64
/**
 * On a busy machine, emulation is too slow for the kernel's timer check, which then panics. The other options save
 * time.
 */
const kernelOptions = 'quiet panic=-1 no_timer_check mitigations=off cryptomgr.notests norandmaps'

/** Incus disks use SCSI, and so does the CD with the seed. */
const moduleNames = [...guestModules, 'virtio_scsi', 'sd_mod', 'sr_mod']

const init = `#!/bin/busybox sh
/bin/busybox mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
read -r modules </lib/modules/wanted
modprobe -a $modules
tries=0
until os=$(findfs LABEL=root) || [ $tries -eq 200 ]; do tries=$((tries + 1)); usleep 50000; done
if ! mount -t ext4 -o noinit_itable "$os" /new; then
  echo "slipway: no OS disk can be mounted" >/dev/console
  poweroff -f
fi
for item in proc sys dev; do /bin/busybox mount --move /$item /new/$item; done
exec /bin/busybox switch_root /new /sbin/init
`

/** The files of the container guest, plus the seed of a VM, which runs first, and support for the power button. */
const files = {
  ...guestFiles,
  'etc/inittab': `::sysinit:/etc/slipway/seed
${guestFiles['etc/inittab']}::respawn:/bin/busybox acpid -f -c /etc/acpi -l /dev/null
::shutdown:/etc/slipway/stop
`,
  'etc/slipway/seed': `#!/bin/sh
mkdir -p /dev/pts /run/seed
mount -t devpts devpts /dev/pts
mount -t iso9660 -o ro "$(findfs LABEL=cidata)" /run/seed
cp /run/seed/user-data /run/seed/vendor-data /etc/slipway/
umount /run/seed
ip link set eth0 up
`,
}

/** Returns a disk image that uses UEFI and NoCloud as the images of distributions do, but boots in seconds. */
export const vmImage = (): Promise<string> =>
  cachedFile('vm.qcow2', [files, init, moduleNames, rootMib, kernelOptions], async (work, target) => {
    const arch = hostArchitecture()
    const packages = new DebianPackages(work, arch.debianName)
    const kernelMeta = `linux-image-cloud-${arch.debianName}`
    await packages.refreshListsIfMissing(kernelMeta)
    const kernelPackage = (await packages.dependenciesOf(kernelMeta))[0]!
    const systemDir = join(work, 'unpacked')
    await packages.unpack([kernelPackage, 'systemd-boot-efi', ...guestPackages], systemDir)
    const version = kernelPackage.replace(/^linux-image-/, '').replace(/-unsigned$/, '')
    const initrd = join(work, 'initrd')
    await writeFile(
      initrd,
      gzipSync(cpioArchive(await initramfsTree(systemDir, version, { init, moduleNames }))),
    )
    const rootDir = join(work, 'root')
    await makeGuestRoot(systemDir, rootDir, files)
    const kernel = join(systemDir, 'boot', `vmlinuz-${version}`)
    const commandLine = `console=${arch.serialConsole} ${kernelOptions}`
    await uefiImage(target, { systemDir, kernel, initrd, rootDir, rootMib, commandLine }, work)
  })

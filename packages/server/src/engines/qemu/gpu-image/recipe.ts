import { guestReporter } from '../../guest-reporter.ts'
import type { Architecture } from '../architecture.ts'

/** Debian's cloud kernels lack drivers for physical devices, such as a passed-through GPU. */
const systemPackages = (arch: Architecture) => [
  ...[`linux-image-${arch.debianName}`, `grub-efi-${arch.debianName}-bin`],
  ...['systemd-sysv', 'udev', 'dbus', 'cloud-init', 'netplan.io', 'systemd-resolved', 'systemd-timesyncd'],
  ...['openssh-server', 'iproute2', 'ca-certificates'],
  // cloud-init uses these to grow the file system.
  ...['cloud-guest-utils', 'e2fsprogs', 'fdisk'],
  // Freezes file systems for images and snapshots of the running VM.
  'qemu-guest-agent',
  // Docker cannot start containers if the kernel has AppArmor but its tools are missing.
  ...['docker.io', 'apparmor'],
]

/** The driver without its graphical part. The kernel module is compiled for the image's kernel. */
export const driverPackages = (arch: Architecture) => [
  ...[`linux-headers-${arch.debianName}`, 'nvidia-kernel-dkms', 'nvidia-smi', 'libcuda1'],
  ...['nvidia-persistenced', 'nvidia-modprobe'],
]

/** Gives containers access to GPUs. Debian does not have this package, but a mirror may. */
export const containerToolkit = 'nvidia-container-toolkit'

export interface Recipe {
  hasDriver: boolean
  hasToolkit: boolean
  /** Additional packages. */
  packages: string[]
}

export function packagesOf(arch: Architecture, recipe: Recipe): string[] {
  return [
    ...systemPackages(arch),
    ...(recipe.hasDriver ? driverPackages(arch) : []),
    ...(recipe.hasToolkit ? [containerToolkit] : []),
    ...recipe.packages,
  ]
}

const reporterUnit = `[Unit]
Description=Reports the GPUs and SSH sessions of this VM to its host
After=nvidia-persistenced.service

[Service]
ExecStart=/usr/sbin/slipway-guest
Restart=always
RestartSec=60

[Install]
WantedBy=multi-user.target
`

/** Debian updates the links to the newest kernel, so that the guest boots it after an upgrade. */
const grubConfig = (arch: Architecture) => `search.fs_label root root
linux /vmlinuz root=LABEL=root ro console=tty0 console=${arch.serialConsole}
initrd /initrd.img
boot
`

const filesOf = (arch: Architecture): Record<string, string> => ({
  'etc/fstab': 'LABEL=root / ext4 defaults 0 1\n',
  // Without this file, cloud-init fails because it requests a locale that does not exist.
  'etc/default/locale': 'LANG=C.UTF-8\n',
  // cloud-init would otherwise look for the metadata services of other clouds.
  'etc/cloud/cloud.cfg.d/90_slipway.cfg': 'datasource_list: [NoCloud, None]\n',
  'etc/systemd/system/slipway-guest.service': reporterUnit,
  'usr/sbin/slipway-guest': guestReporter,
  'etc/slipway/grub.cfg': grubConfig(arch),
})

/** Paths in the image during the build. */
export const efiProgram = '/boot/grub.efi'
export const hookFile = '/root/slipway-hook'

const grubModules = 'part_gpt ext2 search_label linux boot normal'
const grubFormats = { x86_64: 'x86_64-efi', aarch64: 'arm64-efi' }

/**
 * Runs on the host when all packages are installed, with the image's root directory as its argument. Host
 * keys, machine id and host name must differ between VMs, so cloud-init and systemd create them at the first
 * boot.
 */
export function setUpScript(arch: Architecture, { hasDriver }: Recipe, hasHook: boolean): string {
  const writes = Object.entries(filesOf(arch)).map(
    ([path, content]) =>
      `install -D /dev/null "$1/${path}"\ncat >"$1/${path}" <<'END_OF_FILE'\n${content}END_OF_FILE\n`,
  )
  return [
    'set -e\n',
    ...writes,
    'chmod 755 "$1/usr/sbin/slipway-guest"\n',
    'chroot "$1" systemctl enable slipway-guest.service\n',
    hasDriver ? checkModule : '',
    hasHook ? `chmod 755 "$1${hookFile}"\nchroot "$1" ${hookFile}\nrm "$1${hookFile}"\n` : '',
    'if [ -x "$1/usr/bin/nvidia-ctk" ]; then chroot "$1" nvidia-ctk runtime configure --runtime=docker; fi\n',
    `chroot "$1" grub-mkimage -O ${grubFormats[arch.name]} -o ${efiProgram} -p /boot/grub -c /etc/slipway/grub.cfg ${grubModules}\n`,
    'rm -f "$1"/etc/ssh/ssh_host_* "$1/etc/hostname"\n',
    'ln -sf /run/systemd/resolve/stub-resolv.conf "$1/etc/resolv.conf"\n',
  ].join('')
}

const checkModule = `if ! ls "$1"/lib/modules/*/updates/dkms/nvidia*.ko* >/dev/null 2>&1; then
  cat "$1"/var/lib/dkms/*/*/build/make.log >&2 || true
  echo 'The NVIDIA kernel module was not built.' >&2
  exit 1
fi
`

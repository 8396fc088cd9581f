/**
 * The content of the mini guest: busybox, dropbear for SSH, and OpenSSH's server for SFTP. All connections
 * come from one address of the access network, and a dropbear daemon allows only five per address, so each
 * connection gets its own process. Under emulation, processes start slowly. Once /proc is mounted, busybox's
 * shell runs its own commands without starting a program, so most commands here have no path.
 */

import { guestReporter } from '../../guest-reporter.ts'

/** Printed on the console just before SSH starts; an earlier connection cannot succeed. */
export const miniGuestUp = 'slipway: the guest is up'

/** Runs from the initramfs: loads drivers, finds the OS disk by its serial number and switches to it. */
export const initramfsInit = `#!/bin/busybox sh
/bin/busybox mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
read -r command_line </proc/cmdline
case " $command_line " in
*" slipway.probe "*) echo slipway-probe-ok >/dev/console; poweroff -f ;;
esac
read -r modules </lib/modules/wanted
modprobe -a $modules
os=
tries=0
while [ -z "$os" ] && [ $tries -lt 100 ]; do
  for file in /sys/block/vd*/serial; do
    serial=
    read -r serial <"$file"
    [ "$serial" = slipway-os ] && os=\${file#/sys/block/} && os=/dev/\${os%/serial}
  done
  tries=$((tries + 1))
  [ -z "$os" ] && usleep 50000
done
if ! mount -t ext4 -o noinit_itable "$os" /new; then
  echo "slipway: no OS disk can be mounted" >/dev/console
  poweroff -f
fi
for item in proc sys dev; do /bin/busybox mount --move /$item /new/$item; done
exec /bin/busybox switch_root /new /sbin/init
`

/** The files of the root file system, without programs and libraries. */
export const GUEST_FILES: Record<string, { mode: number; content: string }> = {
  'etc/inittab': {
    mode: 0o644,
    content: `::sysinit:/etc/slipway/boot
::respawn:/bin/busybox nc -ll -p 22 -e /usr/sbin/dropbear -i -s -r /etc/dropbear/host_ed25519
::respawn:/bin/busybox acpid -f -c /etc/acpi -l /dev/null
::respawn:/etc/slipway/agent
::once:/etc/slipway/startup
::respawn:/etc/slipway/console
::respawn:/usr/sbin/slipway-guest
::shutdown:/etc/slipway/stop
`,
  },
  'usr/sbin/slipway-guest': { mode: 0o755, content: guestReporter },
  'etc/passwd': { mode: 0o644, content: 'root:x:0:0:root:/root:/bin/sh\n' },
  'etc/group': { mode: 0o644, content: 'root:x:0:\n' },
  // Root has an empty password, for logins on the serial console; SSH accepts only keys.
  'etc/shadow': { mode: 0o600, content: 'root::19000:0:99999:7:::\n' },
  'etc/shells': { mode: 0o644, content: '/bin/sh\n' },
  'etc/profile': { mode: 0o644, content: 'export PATH=/usr/sbin:/usr/bin:/sbin:/bin\n' },
  'etc/os-release': { mode: 0o644, content: 'NAME="Slipway mini guest"\nID=slipway-mini\n' },
  'etc/acpi/PWRF/00000080': { mode: 0o755, content: '#!/bin/sh\nexec poweroff\n' },
  'etc/slipway/boot': {
    mode: 0o755,
    content: `#!/bin/sh
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /tmp
mkdir -p /run/slipway /run/seed
for file in /sys/block/vd*/serial; do
  serial=
  read -r serial <"$file"
  [ "$serial" = slipway-seed ] || continue
  device=\${file#/sys/block/}
  mount -t iso9660 -o ro "/dev/\${device%/serial}" /run/seed
done
. /run/seed/slipway-env
hostname "$GUEST_HOSTNAME"
echo "$GUEST_HOSTNAME" >/etc/hostname
echo "127.0.0.1 localhost $GUEST_HOSTNAME" >/etc/hosts
if [ -s /run/seed/group-env ]; then
  cat /run/seed/group-env >/run/slipway/group.env
  cat /run/seed/group-hosts >>/etc/hosts
fi
ip link set lo up
for file in /sys/class/net/*/address; do
  read -r mac <"$file"
  interface=\${file#/sys/class/net/}
  interface=\${interface%/address}
  case "$mac" in
  "$ACCESS_MAC") ip address add "$ACCESS_CIDR" dev "$interface"; ip link set "$interface" up
    [ -n "$ACCESS_GATEWAY" ] && ip route add default via "$ACCESS_GATEWAY" && echo "nameserver $ACCESS_DNS" >/etc/resolv.conf ;;
  "$PRIVATE_MAC") ip address add "$PRIVATE_CIDR" dev "$interface"; ip link set "$interface" up ;;
  esac
done
umask 077
read -r instance </etc/slipway/instance-id
if [ "$instance" != "$INSTANCE_ID" ]; then
  echo "$INSTANCE_ID" >/etc/slipway/instance-id
  rm -f /etc/dropbear/host_ed25519
  read -r machine </proc/sys/kernel/random/uuid
  echo "$machine" | tr -d - >/etc/machine-id
  chmod 444 /etc/machine-id
fi
mkdir -p /root/.ssh
cat /run/seed/authorized-keys >/root/.ssh/authorized_keys
[ -s /run/seed/group-known-hosts ] && cat /run/seed/group-known-hosts >/root/.ssh/known_hosts
if [ ! -s /etc/dropbear/host_ed25519 ]; then
  if [ -s /run/seed/host-key ]; then cat /run/seed/host-key >/etc/dropbear/host_ed25519
  else dropbearkey -t ed25519 -f /etc/dropbear/host_ed25519 >/dev/null 2>&1; fi
fi
echo "${miniGuestUp} ($GUEST_HOSTNAME)" >/dev/console
`,
  },
  // Opens the port itself, because a shell on /dev/console has no job control.
  'etc/slipway/console': {
    mode: 0o755,
    content: `#!/bin/sh
read -r port </sys/class/tty/console/active
exec getty -L 115200 "\${port##* }" vt100
`,
  },
  'etc/slipway/startup': {
    mode: 0o755,
    content: `#!/bin/sh
[ -s /run/seed/startup-script ] || exit 0
cp /run/seed/startup-script /run/slipway/startup-script
chmod 700 /run/slipway/startup-script
set -a
[ -s /run/slipway/group.env ] && . /run/slipway/group.env
set +a
cd /root && HOME=/root /run/slipway/startup-script >/dev/console 2>&1 </dev/null
`,
  },
  'etc/slipway/instance-id': { mode: 0o600, content: '\n' },
  'etc/slipway/agent': {
    mode: 0o755,
    content: `#!/bin/sh
# The part of the QEMU guest agent's protocol that copies of disks need. A read without a client ends at once.
port=
for file in /sys/class/virtio-ports/*/name; do
  name=
  read -r name <"$file"
  [ "$name" = org.qemu.guest_agent.0 ] && port=\${file#/sys/class/virtio-ports/} && port=/dev/\${port%/name}
done
[ -n "$port" ] || exec sleep 86400
exec 3<>"$port"
each_file_system() {
  while read -r device folder type rest; do
    [ "$type" = ext4 ] && fsfreeze "$1" "$folder"
  done </proc/mounts
}
while :; do
  line=
  read -r line <&3 || sleep 1
  case "$line" in
  *guest-sync*) number=\${line##*:}; echo "{\\"return\\": \${number%%[!0-9]*}}" >&3 ;;
  *guest-fsfreeze-freeze*) sync; each_file_system --freeze; echo '{"return": 1}' >&3 ;;
  *guest-fsfreeze-thaw*) each_file_system --unfreeze; echo '{"return": 1}' >&3 ;;
  *execute*) echo '{"error": {"class": "CommandNotFound", "desc": "not supported"}}' >&3 ;;
  esac
done
`,
  },
  'etc/slipway/stop': {
    mode: 0o755,
    content: `#!/bin/sh
if [ -s /run/seed/shutdown-script ]; then
  cp /run/seed/shutdown-script /run/slipway/shutdown-script
  chmod 700 /run/slipway/shutdown-script
  cd /root && HOME=/root /run/slipway/shutdown-script >/dev/console 2>&1 </dev/null
fi
sync
echo "slipway: powering off" >/dev/console
cd / && umount /run/seed
mount -o remount,ro /
`,
  },
}

/** Mount points and other folders, with their modes. */
export const GUEST_FOLDERS: Record<string, number> = {
  ...{ dev: 0o755, proc: 0o755, sys: 0o755, run: 0o755, mnt: 0o755, home: 0o755 },
  ...{ 'var/log': 0o755, 'etc/dropbear': 0o700, root: 0o700, tmp: 0o1777 },
}

/** Drivers for a guest's devices. A driver that is built into the kernel may be listed too. */
export const guestModules = [
  'virtio_pci',
  'virtio_net',
  'virtio_blk',
  'virtio_rng',
  'virtio_console',
  'virtio_input',
  'crc32c_generic',
  'crc32c_intel',
  'ext4',
  'isofs',
  'button',
  'evdev',
  'fuse',
  'virtiofs',
]

/** Programs and their libraries; the dynamic linker depends on the architecture. */
export const guestPrograms = {
  'usr/sbin/dropbear': 'dropbear',
  'usr/bin/dropbearkey': 'dropbearkey',
  // Debian's dropbear expects the SFTP server here. The scp and sftp commands of OpenSSH 9 and later need it.
  'usr/lib/sftp-server': 'sftp-server',
  'usr/lib/libc.so.6': 'libc.so.6',
  'usr/lib/libcrypt.so.1': 'libcrypt.so.1',
  'usr/lib/libtomcrypt.so.1': 'libtomcrypt.so.1',
  'usr/lib/libtommath.so.1': 'libtommath.so.1',
  'usr/lib/libz.so.1': 'libz.so.1',
  'usr/lib/libgmp.so.10': 'libgmp.so.10',
}

export const guestPackages = [
  'busybox-static',
  'dropbear-bin',
  'openssh-sftp-server',
  'libc6',
  'libcrypt1',
  'libtomcrypt1',
  'libtommath1',
  'zlib1g',
  'libgmp10',
]

/**
 * What runs inside the mini guest: busybox for everything, dropbear for SSH. All connections come from the access
 * network's one host address, and dropbear as a daemon lets in five at a time per address; one process per connection
 * has no such limit.
 */

/** Said on the console just before SSH is served: there is no use in knocking earlier. */
export const MINI_GUEST_UP = 'slipway: the guest is up'

/**
 * Runs from the initramfs: loads drivers, finds the OS disk by its serial, fills it at the first boot with what the
 * initramfs holds and moves over to it, so that everything the user writes afterwards is on a real disk.
 */
export const INITRAMFS_INIT = `#!/bin/busybox sh
/bin/busybox mkdir -p /proc /sys /dev /new
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sysfs /sys
/bin/busybox mount -t devtmpfs devtmpfs /dev
case " $(/bin/busybox cat /proc/cmdline) " in
*" slipway.probe "*) echo slipway-probe-ok >/dev/console; /bin/busybox poweroff -f ;;
esac
while read -r module; do /bin/busybox insmod "/lib/modules/$module.ko"; done </lib/modules/order
os=
tries=0
while [ -z "$os" ] && [ $tries -lt 100 ]; do
  for serial in /sys/block/vd*/serial; do
    [ "$(/bin/busybox cat "$serial" 2>/dev/null)" = slipway-os ] && os=\${serial#/sys/block/} && os=/dev/\${os%/serial}
  done
  tries=$((tries + 1))
  [ -z "$os" ] && /bin/busybox usleep 50000
done
if ! /bin/busybox mount -t ext4 -o noinit_itable "$os" /new; then
  echo "slipway: no OS disk can be mounted" >/dev/console
  /bin/busybox poweroff -f
fi
if [ ! -e /new/etc/slipway/installed ]; then
  for item in bin etc lib root sbin usr; do /bin/busybox cp -a /$item /new/; done
  [ -d /lib64 ] && /bin/busybox cp -a /lib64 /new/
  /bin/busybox mkdir -p /new/proc /new/sys /new/dev /new/run /new/tmp /new/var/log /new/mnt /new/home
  /bin/busybox chmod 1777 /new/tmp
  /bin/busybox chroot /new /bin/busybox --install -s
  /bin/busybox sync
  : >/new/etc/slipway/installed
fi
for item in proc sys dev; do /bin/busybox mount --move /$item /new/$item; done
exec /bin/busybox switch_root /new /sbin/init
`

export const GUEST_FILES: Record<string, { mode: number; content: string }> = {
  'etc/inittab': {
    mode: 0o644,
    content: `::sysinit:/etc/slipway/boot
::respawn:/usr/bin/nc -ll -p 22 -e /usr/sbin/dropbear -i -s -r /etc/dropbear/host_ed25519
::respawn:/sbin/acpid -f -c /etc/acpi -l /dev/null
::once:/etc/slipway/startup
::shutdown:/etc/slipway/stop
`,
  },
  'etc/passwd': { mode: 0o644, content: 'root:x:0:0:root:/root:/bin/sh\n' },
  'etc/group': { mode: 0o644, content: 'root:x:0:\n' },
  'etc/shadow': { mode: 0o600, content: 'root:*:19000:0:99999:7:::\n' },
  'etc/shells': { mode: 0o644, content: '/bin/sh\n' },
  'etc/profile': { mode: 0o644, content: 'export PATH=/usr/sbin:/usr/bin:/sbin:/bin\n' },
  'etc/os-release': { mode: 0o644, content: 'NAME="Slipway mini guest"\nID=slipway-mini\n' },
  'etc/acpi/PWRF/00000080': { mode: 0o755, content: '#!/bin/sh\nexec /sbin/poweroff\n' },
  'etc/slipway/boot': {
    mode: 0o755,
    content: `#!/bin/sh
mount -o remount,rw /
mkdir -p /dev/pts /dev/shm /run/slipway
mount -t devpts devpts /dev/pts
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /tmp
mkdir -p /run/slipway /run/seed
ip link set lo up
for serial in /sys/block/vd*/serial; do
  [ "$(cat "$serial")" = slipway-seed ] || continue
  device=\${serial#/sys/block/}
  mount -t iso9660 -o ro "/dev/\${device%/serial}" /run/seed
done
. /run/seed/slipway-env
hostname "$GUEST_HOSTNAME"
echo "$GUEST_HOSTNAME" >/etc/hostname
echo "127.0.0.1 localhost $GUEST_HOSTNAME" >/etc/hosts
for address in /sys/class/net/*/address; do
  interface=\${address#/sys/class/net/}
  interface=\${interface%/address}
  case "$(cat "$address")" in
  "$ACCESS_MAC") ip address add "$ACCESS_CIDR" dev "$interface"; ip link set "$interface" up
    [ -n "$ACCESS_GATEWAY" ] && ip route add default via "$ACCESS_GATEWAY" && echo "nameserver $ACCESS_DNS" >/etc/resolv.conf ;;
  "$PRIVATE_MAC") ip address add "$PRIVATE_CIDR" dev "$interface"; ip link set "$interface" up ;;
  esac
done
mkdir -p /root/.ssh
cp /run/seed/authorized-keys /root/.ssh/authorized_keys
chmod 700 /root /root/.ssh
chmod 600 /root/.ssh/authorized_keys
mkdir -p /etc/dropbear
[ -s /etc/dropbear/host_ed25519 ] || dropbearkey -t ed25519 -f /etc/dropbear/host_ed25519 >/dev/null 2>&1
echo "${MINI_GUEST_UP} ($GUEST_HOSTNAME)" >/dev/console
`,
  },
  'etc/slipway/startup': {
    mode: 0o755,
    content: `#!/bin/sh
[ -s /run/seed/startup-script ] || exit 0
cp /run/seed/startup-script /run/slipway/startup-script
chmod 700 /run/slipway/startup-script
cd /root && HOME=/root /run/slipway/startup-script >/dev/console 2>&1 </dev/null
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

/** Drivers for the devices that the engine gives a guest; what is built in costs nothing to name. */
export const GUEST_MODULES = [
  'virtio_pci',
  'virtio_net',
  'virtio_blk',
  'virtio_rng',
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

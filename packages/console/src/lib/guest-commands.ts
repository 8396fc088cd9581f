import { parseSshDestination } from '@slipway/contract/names'
import type { Disk, Vm } from '@slipway/sdk'
import { shellQuote } from './shell.ts'

/**
 * Matches only the end of the serial number, because Incus adds a prefix. It has two lines, so that a dialog can
 * show it without scrolling.
 */
const findDevice = (serialNumber: string): string =>
  `disk=/dev/$(lsblk -dno NAME,SERIAL |\n  awk '$2 ~ /${serialNumber}$/ {print $1}')`

type AttachedDisk = Pick<Vm['disks'][number], 'name' | 'type' | 'serial_number' | 'mode'>

/** Returns the commands that mount an attached disk in the VM. They format the disk only if it is empty. */
export function mountCommands({ name, type, serial_number, mode }: AttachedDisk): string {
  const mountPoint = `/mnt/${name}`
  const options = mode === 'read-only' ? '-o ro ' : ''
  if (type === ('shared-volume' satisfies Disk['type']))
    return `sudo mkdir -p ${mountPoint}\nsudo mount -t virtiofs ${options}${serial_number} ${mountPoint}`
  return [
    findDevice(serial_number),
    ...(mode === 'read-only' ? [] : ['sudo blkid "$disk" || sudo mkfs.ext4 "$disk"']),
    `sudo mkdir -p ${mountPoint}`,
    `sudo mount ${options}"$disk" ${mountPoint}`,
  ].join('\n')
}

/** Returns the commands that unmount an attached disk in the VM, wherever it is mounted. */
export function unmountCommands({ type, serial_number }: AttachedDisk): string {
  if (type === ('shared-volume' satisfies Disk['type']))
    return `sudo umount $(findmnt -rno TARGET -S ${serial_number})`
  return `${findDevice(serial_number)}\nsudo umount "$disk"`
}

/** Returns the commands that enlarge the file system of a disk in the VM after the disk was resized. */
export const growCommands = ({ serial_number }: Pick<Disk, 'serial_number'>): string =>
  `${findDevice(serial_number)}\nsudo resize2fs "$disk"`

/** Returns titled connection commands for the user's terminal; empty if the VM has no SSH. */
export function sshCommands({ name, ssh_destination, ssh_host_keys }: Vm): [string, string][] {
  const destination = parseSshDestination(ssh_destination)
  if (!destination) return []
  const { user, host, port } = destination
  const ssh = (options = '') => `ssh ${options}${port === 22 ? '' : `-p ${port} `}${user}@${host}`
  const config = [
    `Host ${name}`,
    `  HostName ${host}`,
    ...(port === 22 ? [] : [`  Port ${port}`]),
    `  User ${user}`,
  ].join('\n')
  return [
    ['SSH', ssh()],
    ['nvidia-smi', `${ssh()} nvidia-smi`],
    ['Tunnel', ssh('-N -L 8888:localhost:8888 ')],
    ['~/.ssh/config', config],
    ...(ssh_host_keys.length > 0
      ? [
          [
            'known_hosts',
            ssh_host_keys.map((key) => `echo ${shellQuote(key)} >> ~/.ssh/known_hosts`).join('\n'),
          ] as [string, string],
        ]
      : []),
    ['CLI', `slipway vm ssh ${name}\nslipway vm tunnel ${name} 8888`],
  ]
}

import { spawnSync } from 'node:child_process'
import type { Vm } from '@slipway/sdk'
import { expect, test } from 'vitest'
import { mountCommands, sshCommands, unmountCommands } from '../src/lib/guest-commands.ts'

const disk = {
  name: 'datasets',
  type: 'persistent-ssd',
  serial_number: '1f0c2d3e4b5a69788796',
  mode: 'read-write',
} as const
const isShell = (text: string) => spawnSync('sh', ['-n'], { input: text }).status === 0

test('the mount commands find a disk by its serial number and format it only if it is empty', () => {
  const lines = mountCommands(disk)
  expect(isShell(lines)).toBe(true)
  expect(lines).toContain('blkid "$disk" || sudo mkfs.ext4 "$disk"')
  expect(lines).toContain('sudo mount "$disk" /mnt/datasets')
})

test.each(['1f0c2d3e4b5a69788796', 'incus_1f0c2d3e4b5a69788796'])(
  'the mount commands find a disk whose serial number is %s',
  (serial) => {
    const listed = `vda incus_root\nvdb ${serial}\nvdc 1f0c2d3e4b5a69788797`
    const finding = mountCommands(disk).split('\n').slice(0, 2).join('\n')
    const script = `lsblk() { echo '${listed}'; }\n${finding}\necho "$disk"`
    expect(String(spawnSync('sh', ['-c', script]).stdout)).toBe('/dev/vdb\n')
  },
)

test('a read-only disk is not formatted', () => {
  const lines = mountCommands({ ...disk, mode: 'read-only' })
  expect(lines).not.toContain('mkfs')
  expect(lines).toContain('mount -o ro "$disk" /mnt/datasets')
})

test('a shared volume is mounted by its tag', () => {
  const lines = mountCommands({ ...disk, type: 'shared-volume' })
  expect(lines).toContain('mount -t virtiofs 1f0c2d3e4b5a69788796 /mnt/datasets')
})

test('the unmount commands find a disk by its serial number, and a shared volume by its tag', () => {
  const lines = unmountCommands(disk)
  expect(isShell(lines)).toBe(true)
  expect(lines.split('\n')).toEqual([...mountCommands(disk).split('\n').slice(0, 2), 'sudo umount "$disk"'])
  const shared = { ...disk, type: 'shared-volume' } as const
  expect(isShell(unmountCommands(shared))).toBe(true)
  expect(unmountCommands(shared)).toContain('-S 1f0c2d3e4b5a69788796')
})

test('every SSH command has the user, address and port of the VM', () => {
  const vm = {
    name: 'train-7',
    ssh_destination: 'ubuntu@203.0.113.7:2222',
    ssh_host_keys: [],
  } as unknown as Vm
  const lines = Object.fromEntries(sshCommands(vm))
  expect(lines.SSH).toBe('ssh -p 2222 ubuntu@203.0.113.7')
  expect(lines['nvidia-smi']).toBe('ssh -p 2222 ubuntu@203.0.113.7 nvidia-smi')
  expect(lines.Tunnel).toBe('ssh -N -L 8888:localhost:8888 -p 2222 ubuntu@203.0.113.7')
  expect(lines['~/.ssh/config']).toBe('Host train-7\n  HostName 203.0.113.7\n  Port 2222\n  User ubuntu')
  expect(Object.fromEntries(sshCommands({ ...vm, ssh_destination: 'root@203.0.113.8' })).SSH).toBe(
    'ssh root@203.0.113.8',
  )
  for (const ssh_destination of ['', '-oProxyCommand=evil@x', 'root@203.0.113.8; evil', 'root@x\nevil'])
    expect(sshCommands({ ...vm, ssh_destination })).toEqual([])
})

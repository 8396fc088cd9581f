import { spawnSync } from 'node:child_process'
import type { Vm } from '@slipway/sdk'
import { expect, test } from 'vitest'
import { mountLines, sshLines } from '../src/lib/guest-lines.ts'

const disk = {
  name: 'datasets',
  type: 'persistent-ssd',
  serial_number: '1f0c2d3e4b5a69788796',
  mode: 'read-write',
} as const
const isShell = (text: string) => spawnSync('sh', ['-n'], { input: text }).status === 0

test('a disk is found by its serial number, and only an empty one is given a file system', () => {
  const lines = mountLines(disk)
  expect(isShell(lines)).toBe(true)
  expect(lines).toContain('blkid "$disk" || sudo mkfs.ext4 "$disk"')
  expect(lines).toContain('sudo mount "$disk" /mnt/datasets')
})

test.each(['1f0c2d3e4b5a69788796', 'incus_1f0c2d3e4b5a69788796'])(
  'a guest that has it as %s finds it',
  (serial) => {
    const listed = `vda incus_root\nvdb ${serial}\nvdc 1f0c2d3e4b5a69788797`
    const [finding] = mountLines(disk).split('\n')
    const script = `lsblk() { echo '${listed}'; }\n${finding}\necho "$disk"`
    expect(String(spawnSync('sh', ['-c', script]).stdout)).toBe('/dev/vdb\n')
  },
)

test('nothing is written to a disk that is attached read-only', () => {
  const lines = mountLines({ ...disk, mode: 'read-only' })
  expect(lines).not.toContain('mkfs')
  expect(lines).toContain('mount -o ro "$disk" /mnt/datasets')
})

test('a shared volume is mounted by its tag', () => {
  const lines = mountLines({ ...disk, type: 'shared-volume' })
  expect(lines).toContain('mount -t virtiofs 1f0c2d3e4b5a69788796 /mnt/datasets')
})

test('lines to reach a VM carry its user, address and port, in every form', () => {
  const vm = {
    name: 'train-7',
    ssh_destination: 'ubuntu@203.0.113.7:2222',
    ssh_host_keys: [],
  } as unknown as Vm
  const lines = Object.fromEntries(sshLines(vm))
  expect(lines.SSH).toBe('ssh -p 2222 ubuntu@203.0.113.7')
  expect(lines['nvidia-smi']).toBe('ssh -p 2222 ubuntu@203.0.113.7 nvidia-smi')
  expect(lines.Tunnel).toBe('ssh -N -L 8888:localhost:8888 -p 2222 ubuntu@203.0.113.7')
  expect(lines['~/.ssh/config']).toBe('Host train-7\n  HostName 203.0.113.7\n  Port 2222\n  User ubuntu')
  expect(Object.fromEntries(sshLines({ ...vm, ssh_destination: 'root@203.0.113.8' })).SSH).toBe(
    'ssh root@203.0.113.8',
  )
  for (const ssh_destination of ['', '-oProxyCommand=evil@x', 'root@203.0.113.8; evil', 'root@x\nevil'])
    expect(sshLines({ ...vm, ssh_destination })).toEqual([])
})

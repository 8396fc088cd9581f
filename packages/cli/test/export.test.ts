import type { Vm } from '@slipway/sdk'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { dstackFleet, skypilotPools, sshConfig } from '../src/commands/export/formats.ts'

const id = '0199c6f2-9a1e-7c4b-8f51-6a2f0c1d7e10'
const vm = (name: string, ssh_destination: string, state = 'STATE_RUNNING', ssh_host_keys: string[] = []) =>
  ({ id, name, ssh_destination, state, ssh_host_keys }) as unknown as Vm
const fleet = [
  vm('train-2', 'ubuntu@127.100.0.2:2222'),
  vm('train-1', 'ubuntu@198.18.0.4'),
  vm('off', 'ubuntu@198.18.0.9', 'STATE_SHUTOFF'),
  vm('hidden', ''),
]
const options = { identity: '~/.ssh/id_ed25519', name: 'slipway' }

test('an SSH config lists running, reachable VMs, sorted by name', () => {
  expect(sshConfig(fleet, options)).toBe(`# Written by \`slipway export ssh-config\`

Host train-1
  HostName 198.18.0.4
  User ubuntu
  Port 22
  IdentityFile ~/.ssh/id_ed25519
  HostKeyAlias slipway-${id}
  StrictHostKeyChecking accept-new

Host train-2
  HostName 127.100.0.2
  User ubuntu
  Port 2222
  IdentityFile ~/.ssh/id_ed25519
  HostKeyAlias slipway-${id}
  StrictHostKeyChecking accept-new
`)
})

test('an SSH config accepts only the host key that the service gave the VM', () => {
  const config = (line: string) =>
    sshConfig([vm('known', 'root@198.18.0.5', 'STATE_RUNNING', [line])], options)
  expect(config('198.18.0.5 ssh-ed25519 AAAAC3Nz')).toContain(`
  HostKeyAlias slipway-${id}
  KnownHostsCommand /bin/echo slipway-${id} ssh-ed25519 AAAAC3Nz
  UserKnownHostsFile none
  StrictHostKeyChecking yes
`)
  for (const odd of [
    '198.18.0.5 ssh-ed25519 AAAA\nProxyCommand evil',
    '198.18.0.5 ssh-ed25519 %h',
    'ssh-ed25519 A',
  ])
    expect(config(odd)).toContain('StrictHostKeyChecking accept-new')
})

test('a dstack fleet has a host for each VM, with its port if it is not 22', () => {
  expect(parse(dstackFleet(fleet, options))).toEqual({
    type: 'fleet',
    name: 'slipway',
    ssh_config: {
      identity_file: '~/.ssh/id_ed25519',
      hosts: [
        { hostname: '198.18.0.4', user: 'ubuntu' },
        { hostname: '127.100.0.2', port: 2222, user: 'ubuntu' },
      ],
    },
  })
})

test('a SkyPilot pool refers to a host with another port by its name in the SSH config', () => {
  expect(parse(skypilotPools(fleet, options))).toEqual({
    slipway: {
      hosts: [{ ip: '198.18.0.4', user: 'ubuntu', identity_file: '~/.ssh/id_ed25519' }, 'train-2'],
    },
  })
})

test('an export of an empty fleet is still a valid document', () => {
  expect(parse(dstackFleet([], options)).ssh_config.hosts).toEqual([])
  expect(parse(skypilotPools([], options)).slipway.hosts).toEqual([])
})

test('an export rejects a VM with a value that could be read as several values', () => {
  const line = 'x\n  ProxyCommand evil'
  const hostile = [
    vm('ok', `ubuntu@203.0.113.7${line}`),
    vm('ok', `${line}@203.0.113.7`),
    vm('ok', '-oProxyCommand=evil@203.0.113.7'),
    vm('ok', 'ubuntu@-oProxyCommand=evil'),
    vm(line, 'ubuntu@203.0.113.7'),
    vm('*', 'ubuntu@203.0.113.7'),
    { ...vm('ok', 'ubuntu@203.0.113.7'), id: line },
  ]
  for (const write of [sshConfig, dstackFleet, skypilotPools])
    for (const one of hostile) expect(() => write([one], options)).toThrow('not safe to pass to ssh')
})

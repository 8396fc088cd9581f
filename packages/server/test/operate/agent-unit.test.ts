import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { eventually } from '@slipway/testing/eventually.ts'
import { Launcher } from '@slipway/testing/launcher.ts'
import { root } from '@slipway/testing/root.ts'
import { afterAll, expect, test } from 'vitest'

const unit = readFileSync(join(root, 'docs/operate/slipway-agent.service'), 'utf8')
const launcher = new Launcher()
afterAll(() => launcher.clear())

const settings = (name: string) =>
  Array.from(unit.matchAll(new RegExp(`^${name}=(.*)$`, 'gm')), ([, value]) => value!)

const hasNamespaces = spawnSync('unshare', ['--net', 'nft', 'list', 'tables']).status === 0

test('systemd starts Incus only after the agent has reported that it is ready', () => {
  expect([settings('Type'), settings('NotifyAccess')]).toEqual([['notify'], ['all']])
  expect([settings('Before'), settings('RequiredBy')]).toEqual([['incus.service'], ['incus.service']])
})

test('the agent reports that it is ready when the packet filter and bridges of the guests are loaded, without Incus', {
  skip: !hasNamespaces,
}, async () => {
  const bin = join(launcher.dir, 'bin')
  const stateDir = join(launcher.dir, 'state')
  const seen = join(launcher.dir, 'seen')
  mkdirSync(bin)
  mkdirSync(stateDir)
  // Shows what the kernel contains at the time of the report.
  const script = `#!/bin/sh\n{ echo "$@"; nft list table inet slipway; ip link show; } >${seen}.new\nmv ${seen}.new ${seen}\n`
  writeFileSync(join(bin, 'systemd-notify'), script)
  chmodSync(join(bin, 'systemd-notify'), 0o755)
  const guest = {
    ...{ vmId: 'f6d2b9b2-1df1-4f3c-9c57-6d7f0a2b2f11', bridge: 'sl0123456789a', vni: 7 },
    ...{ subnetCidr: '10.66.0.0/24', gateway: '10.66.0.1', privateAddress: '10.66.0.5' },
    ...{ macAddress: '52:54:00:c0:f2:01', publicAddress: '', firewall: { generation: 1, rules: [] } },
  }
  writeFileSync(join(stateDir, 'guests.json'), JSON.stringify([guest]))
  const [, , ...args] = settings('ExecStart')[0]!.split(' ')
  const words = args.map((word) => (word === '/var/lib/slipway-agent' ? stateDir : word))
  expect(words).toContain(stateDir)
  const program = join(root, 'packages/server/bin/slipway-server.js')
  const socket = ['--socket', join(launcher.dir, 'no-incus')]
  const agent = launcher.run('unshare', ['--net', process.execPath, program, ...words, ...socket], {
    env: { ...process.env, PATH: `${bin}:${process.env.PATH}:/usr/sbin:/sbin`, NOTIFY_SOCKET: 'a-socket' },
  })
  await eventually(async () => existsSync(seen))
  const kernel = readFileSync(seen, 'utf8')
  expect(kernel).toMatch(/^--ready$/m)
  expect(kernel).toContain(guest.vmId)
  expect(kernel).toContain(guest.bridge)
  expect(await agent.end('SIGTERM')).toBe(0)
})

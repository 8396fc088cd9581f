import { execFile } from 'node:child_process'
import { appendFile, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { serverProgram } from '@slipway/testing/launcher.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { testImage } from '../support/images/container-image.ts'
import { isNetworkLimited } from '../support/incus/config.ts'
import { IncusBench, type IncusMember } from '../support/incus-bench.ts'

const exec = promisify(execFile)
let bench: IncusBench
let dir: string

beforeAll(async () => {
  bench = await IncusBench.open(2)
  dir = await mkdtemp(join(tmpdir(), 'swi-operate-'))
})

afterAll(async () => {
  await bench?.close()
  if (dir) await rm(dir, { recursive: true })
})

/**
 * Runs a command with temporary folders for boot files in its mount namespace, so that no file of this machine
 * is written.
 */
const ownBootFiles =
  'mount -t tmpfs tmpfs /etc/sysctl.d && mount -t tmpfs tmpfs /etc/modules-load.d && exec "$@"'

async function on(
  member: IncusMember,
  args: string[],
  input = '',
): Promise<{ code: number; output: string }> {
  const inside = [`--net=/run/netns/${member.namespace}`, 'unshare', '--mount', '--propagation', 'private']
  const command = ['sh', '-c', ownBootFiles, 'sh', process.execPath, serverProgram, ...args]
  const running = exec('nsenter', [...inside, ...command], { cwd: dir, timeout: 240_000 })
  running.child.stdin!.end(input)
  return running.then(
    ({ stdout }) => ({ code: 0, output: stdout }),
    ({ code, stdout, stderr }) => ({ code, output: `${stdout}${stderr}` }),
  )
}

const doctor = (member: IncusMember, config: string) =>
  on(member, ['doctor', '--engine', 'incus', '--config', config])

test('init turns a new daemon into a host, can be repeated, and doctor lists what is left to do', async () => {
  const [first] = bench.members as [IncusMember]
  const before = join(dir, 'before.toml')
  const location = '[[location]]\nname = "gpu-a"\nengine = "incus"\n[location.incus]\n'
  await writeFile(before, `${location}socket = "${first.socket}"\n`)
  const bare = await doctor(first, before)
  expect(bare.output).toMatch(
    /^problem +project +project slipway does not exist\n +→ slipway-server incus init/m,
  )
  expect(bare.output).toMatch(/^problem +storage pool /m)
  expect(bare.output).toMatch(/^problem +member m1 +accepts no VMs/m)
  expect(bare.code).toBe(1)

  const init = ['incus', 'init', '--socket', first.socket, '--address', `${first.address}:8443`]
  const flags = ['--location', 'gpu-a', '--public-ipv4', '203.0.113.0/24']
  const made = await on(first, [...init, ...flags])
  expect(made.output).toContain('storage pool default: created')
  expect(made.output).toMatch(
    isNetworkLimited ? /^network limits: possible$/m : /^network limits: not possible: load/m,
  )
  expect(made.output).toContain('location gpu-a in slipway.toml: written')
  expect(made.code).toBe(0)
  const toml = await readFile(join(dir, 'slipway.toml'), 'utf8')
  expect((await stat(join(dir, 'incus-client.key'))).mode & 0o777).toBe(0o600)

  const again = await on(first, [...init, ...flags])
  expect(again.output).not.toMatch(/created|written/)
  expect(again.code).toBe(0)
  expect(await readFile(join(dir, 'slipway.toml'), 'utf8')).toBe(toml)
})

test('the next host joins with a token, and doctor finds both correct over HTTPS with the pinned certificate', async () => {
  const [first, second] = bench.members as [IncusMember, IncusMember]
  const config = join(dir, 'slipway.toml')
  await appendFile(config, 'instance_type = "container"\n')
  // A location with limits needs a kernel that can apply them.
  const limited = await doctor(first, config)
  expect(/^problem +member m1 +accepts no VMs: its kernel cannot limit/m.test(limited.output)).toBe(
    !isNetworkLimited,
  )
  await appendFile(config, `network_limits = ${isNetworkLimited}\n`)
  const imageless = await doctor(first, config)
  expect(imageless.output).toMatch(/^problem +images /m)
  expect(imageless.code).toBe(1)
  await first.cli('--project', 'slipway', 'image', 'import', await testImage(), '--alias', 'guest:latest')

  const token = await first.cli('cluster', 'add', 'm2')
  const join2 = ['incus', 'join', '--socket', second.socket, '--address', `${second.address}:8443`]
  expect(await on(second, join2, 'no token')).toMatchObject({ code: 1 })
  const joined = await on(second, join2, token)
  expect(joined.output).toContain('m2 joined')
  expect(joined.output).toContain(`add "https://${second.address}:8443" to urls`)
  expect((await on(second, join2)).output).toContain('m2 is already a member')

  const whole = await doctor(first, config)
  expect(whole.output).toMatch(/^ok +certificate /m)
  for (const member of ['m1', 'm2'])
    expect(whole.output).toMatch(new RegExp(`^ok +member ${member} +filters`, 'm'))
  expect(whole.output).toContain('No problems found.')
  expect(whole.code).toBe(0)

  await exec('nsenter', [
    ...[`--net=/run/netns/${second.namespace}`, 'sysctl', '-qw', 'net.bridge.bridge-nf-call-iptables=0'],
  ])
  const local = join(dir, 'second.toml')
  const socket = `socket = "${second.socket}"\ninstance_type = "container"\nnetwork_limits = ${isNetworkLimited}\n`
  await writeFile(
    local,
    `[[location]]\nname = "gpu-a"\nengine = "incus"\nstorage = "local"\n[location.incus]\n${socket}`,
  )
  const unfiltered = await doctor(second, local)
  expect(unfiltered.output).toMatch(/^problem +bridge filtering +net\.bridge\.bridge-nf-call-iptables is 0/m)
  expect(unfiltered.code).toBe(1)
})

import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { eventually } from '@slipway/testing/eventually.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { withIncus } from '../../../src/engines/incus/context.ts'
import { routingFinding } from '../../../src/engines/incus/operate/routing-finding.ts'
import { ClusterBench, patienceMs, retrying } from '../../support/incus/cluster-bench.ts'

const exec = promisify(execFile)
const publicAddress = '203.0.113.77'
const routerAddress = '198.51.100.100'
const bird = '/usr/sbin/bird'

let cluster: ClusterBench
const speakers: ChildProcess[] = []
beforeAll(async () => {
  await exec(bird, ['--version']).catch(() => expect.fail('needs bird 2: apt-get install bird2'))
  cluster = await ClusterBench.open()
  // Remove the bench's own route, so that routes to a member come only from BGP.
  await ip('route', 'delete', '203.0.113.0/24')
}, 180_000)
afterAll(async () => {
  for (const speaker of speakers) speaker.kill('SIGKILL')
  await cluster?.close()
}, 60_000)

const ip = async (...args: string[]) => (await exec('ip', ['-n', cluster.bench.client, ...args])).stdout

/** Starts bird in a network namespace. It runs in the foreground, so that the test can end it. */
async function startSpeaker(name: string, namespace: string, config: string): Promise<void> {
  const file = join(cluster.bench.dir, `bird-${name}`)
  await writeFile(`${file}.conf`, config)
  const args = [`--net=/run/netns/${namespace}`, bird, '-f', '-c', `${file}.conf`, '-s', `${file}.socket`]
  speakers.push(spawn('nsenter', args, { stdio: 'ignore' }))
}

/** Returns the configuration of docs/operate/incus.md, with the addresses of a member. */
async function documentedConfig(address: string): Promise<string> {
  const guide = await readFile(join(import.meta.dirname, '../../../../../docs/operate/incus.md'), 'utf8')
  const [, block = ''] = /(router id 10\.0\.0\.1;[^`]*)```/.exec(guide) ?? []
  expect(block).toContain('kernel table 2700')
  return block.replaceAll('10.0.0.254', routerAddress).replaceAll('10.0.0.1', address)
}

const routerConfig = (neighbors: string[]) => `router id ${routerAddress};
protocol device {}
protocol kernel { ipv4 { import none; export all; }; }
${neighbors.map((address, index) => `protocol bgp m${index + 1} { local as 64513; neighbor ${address} as 64512; ipv4 { import all; export none; }; }`).join('\n')}
`

test('the route of a public address follows its VM from member to member, as documented for bird', {
  timeout: 300_000,
}, async () => {
  const { engine, at, bench, members } = cluster
  for (const { name, namespace, address } of members)
    await startSpeaker(name, namespace, await documentedConfig(address))
  await startSpeaker('router', bench.client, routerConfig(members.map(({ address }) => address)))

  const nextHop = async () => / via (\S+)/.exec(await ip('route', 'show', publicAddress))?.[1]
  const doctor = () =>
    withIncus(bench.config(), 'default', (ctx) =>
      routingFinding(ctx, async (address) => (await bench.greeting(address, 22)) !== '', cluster.signal),
    )
  const allowed = {
    ...{ ruleId: 'r', action: 'allow' as const, direction: 'ingress' as const, protocols: ['tcp' as const] },
    ...{ peers: ['0.0.0.0/0'], sourcePorts: [], destinationPorts: [[22, 22]] as [number, number][] },
  }
  const firewall = { generation: 1, rules: [allowed] }
  for (const member of members.slice(0, 2)) {
    const template = cluster.specOn(member.name)
    const spec = { ...template, network: { ...template.network, publicAddress } }
    await retrying(() => engine.ensureVm(spec, { power: 'on', firewall }, at(1)))
    await eventually(async () => (await nextHop()) === member.address, patienceMs)
    await eventually(async () => (await doctor()).verdict === 'ok', patienceMs)
    expect((await doctor()).text).toBe(`public addresses respond: ${publicAddress} on ${member.name}`)
    await retrying(() => engine.removeVm(spec, at(2)))
    await eventually(async () => (await nextHop()) === undefined, patienceMs)
  }
  const unrouted = cluster.specOn('m1')
  const spec = { ...unrouted, network: { ...unrouted.network, publicAddress } }
  for (const speaker of speakers) speaker.kill('SIGKILL')
  await ip('route', 'flush', publicAddress)
  await retrying(() => engine.ensureVm(spec, { power: 'on', firewall }, at(1)))
  expect(await doctor()).toMatchObject({
    verdict: 'warning',
    text: `no response on port 22 of ${publicAddress} on m1`,
  })
  await retrying(() => engine.removeVm(spec, at(2)))
})

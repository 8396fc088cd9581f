/**
 * Measures one server process with a location of 500 Incus members and 4,000 instances. Some members are dead
 * and some hang. The cluster is a fake that sends recorded responses, so this measures Slipway, not Incus.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { credentialsOf, readyLine, serverProgram } from '@slipway/testing/launcher.ts'
import { startProgram } from '@slipway/testing/program.ts'
import { sshKey } from '@slipway/testing/ssh-key.ts'
import { FakeCluster } from '../test/support/incus/fake-cluster.ts'

const members = Number(process.env.BENCH_MEMBERS ?? 500)
const vmCount = Number(process.env.BENCH_VMS ?? 400)
const restS = Number(process.env.BENCH_REST_S ?? 60)
const location = 'local-a'
const concurrency = 32
const dir = mkdtempSync(join(tmpdir(), 'slipway-bench-'))
const part = Math.ceil(members / 100)
const incus = new FakeCluster({ members, instancesPerMember: 8, dead: part, hanging: part, delayMs: 50 })
await incus.open(join(dir, 'incus.socket'))
const config = join(dir, 'slipway.toml')
writeFileSync(
  config,
  `[limits]
requests_per_second = 1000000
burst = 1000000
organization_requests_per_second = 1000000
organization_burst = 1000000
[quotas]
a100-80gb_gpus = 100000
vms = 100000
[[location]]
name = "${location}"
engine = "incus"
storage = "local"
[location.incus]
socket = "${join(dir, 'incus.socket')}"
instance_type = "container"
allow_unfiltered_internal = true
network_limits = false
gpus = [{ model = "A100 80GB PCIe", count = 8 }]
`,
)
const flags = ['--config', config, '--data-dir', dir]
const server = startProgram(process.execPath, [serverProgram, ...flags, '--port', '0'], { cwd: tmpdir() })
try {
  await server.until(readyLine)
  const { pid } = server
  const { api_url, access_key, operator_key, project_id } = credentialsOf(dir)
  const call = async (method: string, path: string, key: string, body?: unknown) => {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
    const response = await fetch(`${api_url}/v0.1${path}`, {
      ...{ method, headers },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    if (!response.ok) throw new Error(`${method} ${path}: ${await response.text()}`)
    return (await response.json()) as Record<string, never>
  }
  const adoption = ['images', 'adopt', 'guest:latest', ...flags]
  const { code, errors } = await startProgram(process.execPath, [serverProgram, ...adoption]).ended()
  if (code !== 0) throw new Error(`the image cannot be used: ${errors}`)
  const countHostsUp = async () => {
    let up = 0
    for (let token = ''; ; ) {
      const path = `/admin/hosts?location=${location}&limit=100${token && `&page_token=${token}`}`
      const { items, next_page_token } = (await call('GET', path, operator_key)) as never as {
        items: { name: string; state: string }[]
        next_page_token?: string
      }
      up += items.filter(({ state }) => state === 'up').length
      if (!next_page_token) return up
      token = next_page_token
    }
  }
  const healthy = members - 2 * part
  for (const untilMs = performance.now() + 180_000; (await countHostsUp()) < healthy; await sleep(500))
    if (performance.now() > untilMs) throw new Error(`only ${await countHostsUp()} hosts are up`)

  incus.asked.splice(0)
  const cpuBefore = cpuOf(pid)
  await sleep(restS * 1_000)
  const perMinute = (incus.asked.length * 60) / restS
  const cpuPercent = ((cpuOf(pid) - cpuBefore) / restS) * 100
  show('requests to Incus while idle, per minute', perMinute, `target ≤ ${(members / 50) * 60}`)
  show('CPU while idle, % of a core', cpuPercent, '')

  const begunMs = performance.now()
  const cpuBeforeCreations = cpuOf(pid)
  let next = 0
  let failures = 0
  const worker = async () => {
    for (let index = next++; index < vmCount; index = next++) {
      const body = { name: `vm-${index}`, type: 'a100-80gb.1x', location, image: 'guest:latest' }
      const path = `/projects/${project_id}`
      const accepted = await call('POST', `${path}/vms`, access_key, {
        ...body,
        ssh_public_key: sshKey,
        public_ip: 'none',
      })
      const { operation_id } = (accepted as never as { operation: { operation_id: string } }).operation
      const ended = await call('GET', `${path}/operations/${operation_id}?wait=60`, access_key)
      if ((ended as { state?: string }).state !== 'SUCCEEDED') failures++
    }
  }
  await Promise.all(Array.from({ length: concurrency }, worker))
  const tookS = (performance.now() - begunMs) / 1_000
  show('creations per second, POST to running', vmCount / tookS, 'target ≥ 20')
  // On a busy machine, this is more meaningful than the rate.
  show('server CPU per creation, ms', ((cpuOf(pid) - cpuBeforeCreations) / vmCount) * 1_000, '')
  show('creations that did not succeed within a minute', failures, 'expected: those on hanging members')

  const vpc = `/projects/${project_id}/vpc`
  const { items: networks } = (await call('GET', `${vpc}/networks`, access_key)) as never as {
    items: { id: string }[]
  }
  const ruleMs = performance.now()
  const networkId = networks[0]!.id
  const rule = {
    ...{
      name: 'bench',
      vpc_network_id: networkId,
      action: 'allow',
      direction: 'ingress',
      protocols: ['tcp'],
    },
    ...{ sources: [{ cidr: '192.0.2.0/24' }], destinations: [{ resource_id: networkId }] },
    destination_ports: ['443'],
  }
  const changed = await call('POST', `${vpc}/firewall-rules`, access_key, rule)
  const { operation_id } = (changed as never as { operation: { operation_id: string } }).operation
  await call('GET', `/projects/${project_id}/operations/${operation_id}?wait=60`, access_key)
  show(
    `a rule for ${vmCount} VMs of one network, s`,
    (performance.now() - ruleMs) / 1_000,
    'target ≤ 3 for 100, ≤ 10 for 1,000',
  )

  const lost = incus.names.at(-1)!
  incus.switchOff(lost)
  const lostMs = performance.now()
  const before = await countHostsUp()
  while ((await countHostsUp()) >= before) await sleep(200)
  // This includes the 20 s after which Incus shows a member as offline.
  show(
    'time from when a host is switched off until it is down, s',
    (performance.now() - lostMs) / 1_000,
    'target ≤ 40',
  )
  incus.behavior.delete(lost)
  const repairedMs = performance.now()
  while ((await countHostsUp()) < before) await sleep(200)
  show(
    'time from when Incus reports a host online until it is marked up, s',
    (performance.now() - repairedMs) / 1_000,
    'target ≤ 10',
  )
  const rssMb = Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024
  show('memory of the server, MB', rssMb, '')
} finally {
  await server.end('SIGTERM')
  await incus.close()
  rmSync(dir, { recursive: true, force: true })
}

function show(what: string, value: number, note: string): void {
  console.log(`${what.padEnd(48)} ${value.toFixed(1).padStart(9)}${note && `  [${note}]`}`)
}

/** Returns the CPU time that a process has used, in seconds. */
function cpuOf(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ')
  return (Number(fields[11]) + Number(fields[12])) / 100
}

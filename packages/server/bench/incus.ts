/**
 * Measures the time from `POST /vms` to a running VM, through the API of a real server process, and compares
 * it with the `incus` client, which creates the same instance, firewall rule and forward and waits for the
 * SSH banner. Guests are containers of an Incus daemon in its own network namespace. The API and the client
 * take turns, so that other load on the machine affects both.
 */
import { execFile, spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { credentialsOf, readyLine, serverProgram } from '@slipway/testing/launcher.ts'
import { startProgram } from '@slipway/testing/program.ts'
import { print } from '@slipway/testing/report.ts'
import { sshKey } from '@slipway/testing/ssh-key.ts'
import { IncusBench } from '../test/support/incus-bench.ts'

const rounds = Number(process.env.BENCH_ROUNDS ?? 7)
const maxRatio = 1.15
const handAddress = '203.0.113.250'
const handPrivate = '172.27.15.200'
const image = 'guest:latest'

const [flag, socket] = process.argv.slice(2)
if (flag === '--inside') await measure(socket!)
else await measureInside()

/** Guests are reachable only from the client's namespace, so the measurement runs there. */
async function measureInside(): Promise<void> {
  const bench = await IncusBench.alone()
  try {
    const inside = [`--net=/run/netns/${bench.client}`, process.execPath, process.argv[1]!, '--inside']
    const child = spawn('nsenter', [...inside, bench.members[0]!.socket], { stdio: 'inherit' })
    process.exitCode = await new Promise<number>((resolve) =>
      child.once('exit', (code) => resolve(code ?? 1)),
    )
  } finally {
    await bench.close()
  }
}

type ResponseBody = Record<string, unknown>
type Call = (method: string, path: string, body?: unknown) => Promise<ResponseBody>

async function measure(incusSocket: string): Promise<void> {
  const dataDir = mkdtempSync(join(tmpdir(), 'slipway-bench-'))
  const config = join(dataDir, 'slipway.toml')
  writeFileSync(config, configOf(incusSocket))
  const args = [serverProgram, '--config', config, '--port', '0', '--data-dir', dataDir]
  const server = startProgram(process.execPath, args, { cwd: tmpdir() })
  const incus = (commandLine: string[], input = '') => incusClient(incusSocket, commandLine, input)
  try {
    await server.until(readyLine)
    const { api_url, access_key, project_id } = credentialsOf(dataDir)
    const call = caller(`${api_url}/v0.1/projects/${project_id}`, access_key)
    const adoption = ['images', 'adopt', image, '--config', config, '--data-dir', dataDir]
    const { code, errors } = await startProgram(process.execPath, [serverProgram, ...adoption]).ended()
    if (code !== 0) throw new Error(`the image cannot be used: ${errors}`)
    // This VM is not deleted, so that the bridge and its firewall remain. The instances created by hand copy
    // the definition of this VM.
    const pattern = await createThroughApi(call, 'pattern')
    const definition = JSON.parse(await incus(['query', `/1.0/instances/vm-${pattern.id}?project=slipway`]))
    const [byApiMs, byHandMs]: [number[], number[]] = [[], []]
    const api = async (round: number) => {
      const { id, ms } = await createThroughApi(call, `round-${round}`)
      byApiMs.push(ms)
      await waitForSuccess(call, await call('DELETE', `/vms/${id}`))
    }
    const hand = async (round: number) =>
      byHandMs.push(await createByHand(incus, definition, `hand-${round}`))
    for (let round = 1; round <= rounds; round++) {
      for (const one of round % 2 === 0 ? [hand, api] : [api, hand]) await one(round)
      const [apiMs, handMs] = [byApiMs.at(-1)!, byHandMs.at(-1)!].map(Math.round)
      console.error(`  round ${round}: ${apiMs} ms through the API, ${handMs} ms by hand`)
    }
    const [value, baseline] = [median(byApiMs), median(byHandMs)]
    const what = `POST → running, incus, containers, median of ${rounds}`
    print([{ what, value, unit: 'ms', baseline, baselineIs: 'incus client', aim: `ratio ≤ ${maxRatio}` }])
    if (value > baseline * maxRatio) process.exitCode = 1
  } finally {
    await server.end('SIGTERM')
    rmSync(dataDir, { recursive: true, force: true })
  }
}

function configOf(incusSocket: string): string {
  return `[[location]]
name = "local-a"
engine = "incus"
public_ipv4 = "203.0.113.0/25"
[location.incus]
socket = "${incusSocket}"
instance_type = "container"
allow_unfiltered_internal = true
network_limits = false
gpus = [{ model = "A100 80GB PCIe", count = 8 }]
`
}

function caller(base: string, key: string): Call {
  return async (method, path, body) => {
    const headers = {
      authorization: `Bearer ${key}`,
      ...(body !== undefined && { 'content-type': 'application/json' }),
    }
    const response = await fetch(`${base}${path}`, {
      method,
      headers,
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    if (!response.ok) throw new Error(`${method} ${path}: ${await response.text()}`)
    return (await response.json()) as ResponseBody
  }
}

async function createThroughApi(call: Call, name: string): Promise<{ id: string; ms: number }> {
  const startedAt = performance.now()
  const id = await waitForSuccess(
    call,
    await call('POST', '/vms', {
      ...{ name, type: 'a100-80gb.1x', location: 'local-a', image, ssh_public_key: sshKey },
    }),
  )
  return { id, ms: performance.now() - startedAt }
}

/** Waits for the operation as a client does, and returns the id of its VM. */
async function waitForSuccess(call: Call, response: ResponseBody): Promise<string> {
  const { operation_id, metadata } = response.operation as { operation_id: string; metadata: { id: string } }
  for (;;) {
    const operation = await call('GET', `/operations/${operation_id}?wait=60`)
    if (operation.state === 'SUCCEEDED') return metadata.id
    if (operation.state === 'FAILED') throw new Error(JSON.stringify(operation.result))
  }
}

interface Definition {
  config: Record<string, string>
  devices: Record<string, Record<string, string>>
}

type Incus = (commandLine: string[], input?: string) => Promise<string>

async function createByHand(incus: Incus, pattern: Definition, name: string): Promise<number> {
  const bridge = pattern.devices.eth0!.network!
  const config = Object.entries(pattern.config).filter(([key]) => !/^(volatile|user|image)\./.test(key))
  const eth0 = { ...pattern.devices.eth0!, hwaddr: '52:54:00:ba:0d:01', 'ipv4.address': handPrivate }
  const definition = { config: Object.fromEntries(config), devices: { ...pattern.devices, eth0 } }
  const rule = ['action=allow', 'protocol=tcp', 'destination_port=22', `destination=${handPrivate}/32`]
  const project = ['--project', 'slipway']
  const startedAt = performance.now()
  await incus(['init', `local:${image}`, name, '--no-profiles', ...project], JSON.stringify(definition))
  await incus(['network', 'acl', 'rule', 'add', bridge, 'ingress', ...rule])
  await incus(['network', 'forward', 'create', bridge, handAddress, `target_address=${handPrivate}`])
  await incus(['start', name, ...project])
  await waitForBanner(handAddress, 22)
  const ms = performance.now() - startedAt
  await incus(['delete', '--force', name, ...project])
  await incus(['network', 'forward', 'delete', bridge, handAddress])
  await incus(['network', 'acl', 'rule', 'remove', bridge, 'ingress', ...rule])
  return ms
}

function incusClient(incusSocket: string, commandLine: string[], input: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const env = { ...process.env, INCUS_SOCKET: incusSocket }
    const child = execFile('incus', commandLine, { env, timeout: 60_000 }, (error, stdout, stderr) =>
      error ? reject(new Error(`incus ${commandLine.join(' ')}: ${stderr}`)) : resolve(stdout),
    )
    child.stdin!.end(input)
  })
}

/** Connects repeatedly until the guest sends its SSH banner. */
async function waitForBanner(host: string, port: number): Promise<void> {
  while (!(await hasBanner(host, port))) await sleep(50)
}

function hasBanner(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, timeout: 500 })
    socket.once('data', (data) => {
      resolve(data.toString().startsWith('SSH-'))
      socket.destroy()
    })
    for (const end of ['error', 'close', 'timeout'])
      socket.once(end, () => {
        resolve(false)
        socket.destroy()
      })
  })
}

function median(values: number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!
}

/**
 * Measures the time from `POST /vms` to the guest's SSH banner at the VM's `ssh_destination`, through the API
 * of a real server process, and compares it with the same QEMU command started by hand with the same image.
 * The API and the command take turns, so that other load on the machine affects both.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { print } from '@slipway/testing/report.ts'
import { sshKey } from '@slipway/testing/ssh-key.ts'

const rounds = Number(process.env.BENCH_ROUNDS ?? 5)
const maxRatio = 1.15
const byHandAddress = '127.99.250.1'
const byHandPort = 22_022

const program = join(dirname(fileURLToPath(import.meta.url)), '../main.js')
const dataDir = mkdtempSync(join(tmpdir(), 'slipway-bench-'))
const vmsDir = join(dataDir, 'qemu/local-a/vms')
const byHandDir = join(dataDir, 'by-hand')
const server = startServer()
try {
  await untilReady(server)
  const { api_url, access_key, project_id } = JSON.parse(
    readFileSync(join(dataDir, 'credentials.json'), 'utf8'),
  ) as Record<string, string>
  const call = caller(`${api_url}/v0.1/projects/${project_id}`, access_key!)
  const [byApiMs, byHandMs]: [number[], number[]] = [[], []]
  // Warms the page cache, starts the forwarder and provides the command. This run does not count.
  let { commandLine } = await createThroughApi(call, 'warm-up')
  const measureApi = async (name: string) => {
    const measured = await createThroughApi(call, name)
    // The command must match the seed that was saved with it, which has the MAC addresses of the interfaces.
    commandLine = measured.commandLine
    byApiMs.push(measured.ms)
  }
  for (let round = 1; round <= rounds; round++) {
    const measure = [
      () => measureApi(`round-${round}`),
      async () => byHandMs.push(await startByHand(commandLine)),
    ]
    for (const one of round % 2 === 0 ? measure.reverse() : measure) await one()
    const [apiMs, handMs] = [byApiMs.at(-1)!, byHandMs.at(-1)!].map(Math.round)
    console.error(`  round ${round}: ${apiMs} ms through the API, ${handMs} ms by hand`)
  }
  const [value, baseline] = [median(byApiMs), median(byHandMs)]
  const what = `POST → SSH banner, qemu, median of ${rounds}`
  const aim = `ratio ≤ ${maxRatio}`
  print([{ what, value, unit: 'ms', baseline, baselineIs: 'same command by hand', aim }])
  if (value > baseline * maxRatio) process.exitCode = 1
} finally {
  server.kill('SIGTERM')
  await new Promise((resolve) => server.once('exit', resolve))
  rmSync(dataDir, { recursive: true, force: true })
}

function startServer(): ChildProcess {
  const args = [program, '--engine', 'qemu', '--port', '0', '--data-dir', dataDir]
  return spawn(process.execPath, args, { cwd: tmpdir(), stdio: ['ignore', 'pipe', 'inherit'] })
}

function untilReady(child: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    let output = ''
    child.stdout!.on('data', (chunk) => {
      output += chunk
      if (output.includes('"msg":"ready"')) resolve()
    })
    child.once('exit', () => reject(new Error(`the server ended early: ${output}`)))
  })
}

type ResponseBody = Record<string, unknown>
type Call = (method: string, path: string, body?: unknown) => Promise<ResponseBody>

function caller(base: string, key: string): Call {
  return async (method, path, body) => {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
    const init =
      body === undefined
        ? { method, headers: { authorization: headers.authorization } }
        : { method, headers, body: JSON.stringify(body) }
    const response = await fetch(`${base}${path}`, init)
    if (!response.ok) throw new Error(`${method} ${path}: ${await response.text()}`)
    return (await response.json()) as ResponseBody
  }
}

async function createThroughApi(call: Call, name: string) {
  const startedAt = performance.now()
  const vmId = await waitForSuccess(
    call,
    await call('POST', '/vms', {
      ...{ name, type: 'a100-80gb.1x', location: 'local-a', image: 'mini:latest' },
      ssh_public_key: sshKey,
    }),
  )
  const { ssh_destination } = await call('GET', `/vms/${vmId}`)
  const [host, port] = String(ssh_destination).split('@')[1]!.split(':')
  await waitForBanner(host!, Number(port ?? 22))
  const ms = performance.now() - startedAt

  const pid = readFileSync(join(vmsDir, vmId, 'qemu.pid'), 'utf8').trim()
  const commandLine = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').slice(0, -1)
  cpSync(join(vmsDir, vmId, 'seed.iso'), join(byHandDir, 'seed.iso'), { recursive: true })
  await waitForSuccess(call, await call('DELETE', `/vms/${vmId}`))
  return { ms, commandLine }
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

/**
 * Starts QEMU with the engine's arguments, new disks and a forward to the SSH port. The engine adds that
 * forward only after the start, so its arguments do not contain it.
 */
async function startByHand(commandLine: string[]): Promise<number> {
  const images = join(dataDir, 'qemu/images')
  const mini = readdirSync(images).find((name) => existsSync(join(images, name, 'os.qcow2')))!
  const base = join(images, mini, 'os.qcow2')
  const [command, ...args] = commandLine.map((argument) =>
    argument.startsWith('user,id=access')
      ? `${argument},hostfwd=tcp:${byHandAddress}:${byHandPort}-100.127.255.15:22`
      : argument,
  )
  const startedAt = performance.now()
  await runToEnd(
    'qemu-img',
    ['create', '-q', '-f', 'qcow2', '-b', base, '-F', 'qcow2', 'os.qcow2'],
    byHandDir,
  )
  await runToEnd('qemu-img', ['create', '-q', '-f', 'qcow2', 'scratch.qcow2', '960G'], byHandDir)
  const qemu = spawn(command!, args, { cwd: byHandDir, stdio: ['ignore', 'ignore', 'inherit'] })
  const ended = new Promise<never>((_, reject) => {
    qemu.once('exit', () => reject(new Error('QEMU ended early')))
  })
  await Promise.race([waitForBanner(byHandAddress, byHandPort), ended])
  const ms = performance.now() - startedAt
  qemu.kill('SIGKILL')
  await ended.catch(() => {})
  return ms
}

/**
 * Connects repeatedly until the guest sends its SSH banner. The timeout grows with the waiting time: on a
 * slow machine, a guest needs longer to send the banner, and abandoned connections keep it busy.
 */
async function waitForBanner(host: string, port: number): Promise<void> {
  const startedAt = performance.now()
  for (;;) {
    const timeoutMs = Math.max(400, (performance.now() - startedAt) / 10)
    const hasBanner = await new Promise<boolean>((resolve) => {
      const socket = connect({ host, port })
      const timer = setTimeout(() => socket.destroy(), timeoutMs)
      socket.once('data', (data) => {
        resolve(data.toString().startsWith('SSH-'))
        socket.destroy()
      })
      socket.once('error', () => resolve(false))
      socket.once('close', () => {
        clearTimeout(timer)
        resolve(false)
      })
    })
    if (hasBanner) return
    await sleep(50)
  }
}

function runToEnd(command: string, args: string[], cwd: string): Promise<unknown> {
  return new Promise((resolve) => spawn(command, args, { cwd, stdio: 'ignore' }).once('exit', resolve))
}

function median(values: number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!
}

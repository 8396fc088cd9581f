/**
 * From "power on" to the guest's SSH greeting: through the engine, and by the very same QEMU command typed by hand with
 * the same image. Runs alternate, so that a busy machine is busy for both. Prints one line of JSON; the ratio of the
 * medians is to be at most 1.15.
 */
import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { createQemuEngine, ensureMiniGuest } from '../src/engines/qemu/index.ts'
import type { Engine, VmSpec } from '../src/operations/engine.ts'

const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 3)
const MAX_RATIO = 1.15
const PUBLIC_ADDRESS = '127.100.250.1'
const HAND_ADDRESS = '127.99.250.1'
const HAND_PORT = 22_022

const cacheDir = process.env.BENCH_DATA_DIR ?? (await mkdtemp(join(tmpdir(), 'slipway-bench-')))
const source = await ensureMiniGuest(cacheDir, (message) => console.error(message))
const forwarderProgram =
  process.env.BENCH_FORWARDER ?? join(dirname(fileURLToPath(import.meta.url)), '../dist/qemu-forwarder.js')
const engine = await createQemuEngine({
  ...{ dataDir: cacheDir, location: 'bench', scale: 0.002, addressRange: '127.100.0.0/16', egress: 'none' },
  ...{ gpus: [{ model: 'A100 80GB PCIe', count: 1 }], bootTimeoutS: 300, forwarderProgram },
  log: { info() {}, warn: (details, message) => console.error(message, details) },
})
const signal = AbortSignal.timeout(3_600_000)
let host = ''
for await (const report of engine.inventory(signal)) host = report.name

const byEngine: number[] = []
const byHand: number[] = []
// The first round warms the page cache and makes the base of the OS disk; it does not count.
for (let round = 0; round <= ROUNDS; round++) {
  const measured = await measureEngine(engine)
  const handMs = await measureByHand(measured.commandLine, measured.spec)
  if (round === 0) continue
  byEngine.push(measured.ms)
  byHand.push(handMs)
}
await engine.close()
if (!process.env.BENCH_DATA_DIR) await rm(cacheDir, { recursive: true, force: true })
const ratio = median(byEngine) / median(byHand)
console.log(
  JSON.stringify({ bench: 'qemu-boot', byEngineMs: byEngine, byHandMs: byHand, ratio, maxRatio: MAX_RATIO }),
)
process.exit(ratio <= MAX_RATIO ? 0 : 1)

/** The clock starts before the VM is defined and stops when it is reported to have greeted. */
async function measureEngine(engine: Engine) {
  const spec = newSpec()
  const startedAt = performance.now()
  await engine.ensureVm(spec, { generation: 1, signal })
  await engine.applyFirewall(spec, [sshFromAnywhere()], { generation: 1, signal })
  await engine.powerVm(spec, 'on', { generation: 1, signal })
  while ((await engine.inspectVm(spec, signal))?.power !== 'running') await sleep(100)
  const ms = performance.now() - startedAt
  const folder = join(cacheDir, 'qemu/bench/vms', spec.id)
  const pid = Number(await readFile(join(folder, 'qemu.pid'), 'utf8'))
  const commandLine = (await readFile(`/proc/${pid}/cmdline`, 'utf8')).split('\0').slice(0, -1)
  await engine.powerVm(spec, 'off', { generation: 2, signal })
  return { ms, commandLine, spec }
}

/** The same arguments with a fresh disk over the same base; only the forward, which the engine adds later, is spelled out. */
async function measureByHand(commandLine: string[], spec: VmSpec): Promise<number> {
  const folder = join(cacheDir, 'qemu/bench/vms', spec.id)
  const base = join(cacheDir, 'qemu/images', String(source.folder), `os-${spec.osDiskGib}g.qcow2`)
  const [program, ...args] = commandLine.map((argument) =>
    argument.startsWith('user,id=access')
      ? `${argument},hostfwd=tcp:${HAND_ADDRESS}:${HAND_PORT}-100.127.255.15:22`
      : argument,
  )
  const startedAt = performance.now()
  await finished('qemu-img', ['create', '-q', '-f', 'qcow2', '-b', base, '-F', 'qcow2', 'os.qcow2'], folder)
  const qemu = spawn(program!, args, { cwd: folder, stdio: 'ignore' })
  await greeting(HAND_ADDRESS, HAND_PORT)
  const ms = performance.now() - startedAt
  const ended = new Promise((resolve) => qemu.once('exit', resolve))
  qemu.kill('SIGKILL')
  await ended
  await engine.removeVm(spec, { generation: 3, signal })
  return ms
}

/**
 * A client that tries again and again. Its patience grows with the waiting: on a slow machine a guest needs longer for
 * its greeting, and abandoned connections keep it busy.
 */
async function greeting(host: string, port: number): Promise<void> {
  const startedAt = performance.now()
  for (;;) {
    const patienceMs = Math.max(400, (performance.now() - startedAt) / 10)
    const isGreeted = await new Promise<boolean>((resolve) => {
      const socket = connect({ host, port })
      const timer = setTimeout(() => socket.destroy(), patienceMs)
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
    if (isGreeted) return
    await sleep(50)
  }
}

function finished(program: string, args: string[], cwd: string): Promise<unknown> {
  return new Promise((resolve) => spawn(program, args, { cwd, stdio: 'ignore' }).once('exit', resolve))
}

function median(values: number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!
}

function sshFromAnywhere() {
  return {
    ...{
      ruleId: 'ssh',
      action: 'allow' as const,
      direction: 'ingress' as const,
      protocols: ['tcp' as const],
    },
    ...{ peers: ['0.0.0.0/0'], sourcePorts: [], destinationPorts: [[22, 22] as [number, number]] },
  }
}

function newSpec(): VmSpec {
  return {
    ...{ id: randomUUID(), host, name: 'bench', projectId: randomUUID(), type: 'a100-80gb.1x' },
    ...{ cpuCores: 12, memoryGb: 120, gpus: [], osDiskGib: 128, scratchGb: 0 },
    image: { name: 'mini:latest', source },
    sshPublicKey: 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl bench',
    ...{ startupScript: '', shutdownScript: '' },
    network: {
      ...{ networkId: randomUUID(), macAddress: '52:54:00:be:00:01', privateAddress: '172.27.0.9' },
      ...{ subnetCidr: '172.27.0.0/20', gateway: '172.27.0.1', publicAddress: PUBLIC_ADDRESS },
    },
    disks: [],
  }
}

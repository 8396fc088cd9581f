import { execFileSync } from 'node:child_process'
import { chmod, mkdir, mkdtemp, open, rename, rm, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import type { Engine, VmSpec } from '../../src/engines/engine.ts'
import { hostArchitecture } from '../../src/engines/qemu/architecture.ts'
import { canShareVolumes, hungImage, makeBench, type QemuBench } from '../support/qemu-bench.ts'
import { diskOf, specOf, wanted } from '../support/qemu-spec.ts'

const WITHIN = { timeout: 240_000 }
const signal = AbortSignal.timeout(600_000)
const call = (generation = 1) => ({ generation, signal })

let bench: QemuBench
let engine: Engine & { close(): Promise<void> }
let host: string
let hung: QemuBench['image']

beforeAll(async () => {
  bench = await makeBench()
  hung = await hungImage(bench)
  engine = await bench.open()
  for await (const report of engine.inventory(signal)) host = report.name
}, 300_000)
afterAll(async () => {
  await engine?.close()
  await bench?.close()
}, 60_000)

test(
  'the qemu engine uses port 2222 for SSH if 22 is taken, and reports it if both are',
  WITHIN,
  async () => {
    const spec = await defineVm()
    const blockers = [await occupy(22)]
    await engine.ensureVm(spec, wanted('on'), call())
    expect((await engine.inspectVm(spec, signal))?.sshDestination).toBe(`root@${bench.publicAddress}:2222`)
    await engine.powerVm(spec, 'off', call(2))
    blockers.push(await occupy(2222))
    await expect(engine.ensureVm(spec, wanted('on'), call(3))).rejects.toMatchObject({
      kind: 'unavailable',
      message: expect.stringContaining('EADDRINUSE'),
    })
    for (const blocker of blockers) blocker.close()
    await engine.ensureVm(spec, wanted('on'), call(3))
    expect((await engine.inspectVm(spec, signal))?.sshDestination).toBe(`root@${bench.publicAddress}`)
    await engine.removeVm(spec, call(4))
  },
)

test(
  'the qemu engine reports a guest that never responds, with the last lines of its console',
  WITHIN,
  async () => {
    const impatient = await openEngine({ bootTimeoutS: 4 })
    const spec = await defineVm({ image: hung })
    await impatient.ensureVm(spec, wanted('on'), call())
    for (;;) {
      const status = await impatient.inspectVm(spec, signal)
      if (status?.power === 'crashed') {
        expect(status.detail).toMatch(/SSH did not respond within 4 s.*last lines of the serial console/s)
        break
      }
      expect(status?.power).toBe('booting')
      await sleep(200)
    }
    await engine.removeVm(spec, call(2))
  },
)

test(
  'the qemu engine gives up on a QEMU that does not respond, and can still power it off',
  WITHIN,
  async () => {
    const spec = await defineVm()
    await engine.ensureVm(spec, wanted('on'), call())
    const qemu = (await bench.processes()).find(({ commandLine }) => commandLine.startsWith('qemu-system'))!
    process.kill(qemu.pid, 'SIGSTOP')
    const impatient = await openEngine({ qmpTimeoutMs: 1_000 })
    await expect(impatient.powerVm(spec, 'reset', call(2))).rejects.toMatchObject({ kind: 'unavailable' })
    await engine.powerVm(spec, 'off', call(3))
    expect((await engine.inspectVm(spec, signal))?.power).toBe('off')
    await engine.removeVm(spec, call(4))
  },
)

/** Returns a guest that powered off, but whose keeper has not recorded the end of QEMU yet. */
async function powerOffUnrecorded(): Promise<{ spec: VmSpec; keeper: number }> {
  const spec = await defineVm({ image: hung })
  await engine.ensureVm(spec, wanted('on'), call())
  const pidOf = async (program: string) =>
    (await bench.processes()).find(
      ({ commandLine }) => commandLine.startsWith(program) && commandLine.includes(spec.id),
    )?.pid
  const keeper = (await pidOf('/bin/sh'))!
  process.kill(keeper, 'SIGSTOP')
  // QEMU exits with 0, as after a power-off by the guest.
  process.kill((await pidOf('qemu-system'))!, 'SIGTERM')
  while (await pidOf('qemu-system')) await sleep(20)
  return { spec, keeper }
}

test(
  'a qemu guest is off if another process deletes its run record during an inspection',
  WITHIN,
  async () => {
    const { spec, keeper } = await powerOffUnrecorded()
    // A closed engine does not check its VMs, so only another engine that reads the VM's files can notice.
    const other = await bench.open({ location: 'local-b' })
    let otherHost = ''
    for await (const report of other.inventory(signal)) otherHost = report.name
    await other.close()
    const folder = join(bench.dataDir, 'qemu/local-a/vms', spec.id)
    const aside = join(bench.dataDir, 'qemu/local-b/vms', spec.id)
    await mkdir(dirname(aside), { recursive: true })
    await rename(folder, aside)
    const keeperFile = join(aside, 'keeper.pid')
    await rm(keeperFile)
    execFileSync('mkfifo', [keeperFile])
    const inspection = other.inspectVm({ ...spec, host: otherHost }, signal)
    // The inspection has read the run record. The file can be opened when the inspection waits for the keeper's pid.
    const keeperPid = await open(keeperFile, 'w')
    // Acts like another process that has read the end of QEMU and deleted the records.
    await rm(join(aside, 'run.json'))
    process.kill(keeper, 'SIGKILL')
    await rm(keeperFile)
    await keeperPid.writeFile(String(keeper))
    await keeperPid.close()
    expect(await inspection).toMatchObject({ power: 'off' })
    await rename(aside, folder)
    await engine.removeVm(spec, call(2))
  },
)

test('a qemu guest that powered itself off is off, even if its keeper records it late', WITHIN, async () => {
  const { spec, keeper } = await powerOffUnrecorded()
  setTimeout(() => process.kill(keeper, 'SIGCONT'), 1_500)
  for (;;) {
    const status = await engine.inspectVm(spec, signal)
    if (status?.power === 'off') break
    expect(status?.power).toBe('booting')
    await sleep(20)
  }
  await engine.removeVm(spec, call(2))
})

test('the qemu engine powers off a guest that does not shut down in time', WITHIN, async () => {
  const spec = await defineVm({ image: hung })
  await engine.ensureVm(spec, wanted('on'), call())
  await engine.powerVm(spec, 'shutdown', call(2))
  expect((await engine.inspectVm(spec, signal))?.power).toBe('stopping')
  // An engine with a shorter limit ends the shutdown at its next check.
  await openEngine({ shutdownLimitMs: 1 })
  while ((await engine.inspectVm(spec, signal))?.power !== 'off') await sleep(100)
  await engine.removeVm(spec, call(3))
})

test('the qemu engine serves no volume to a QEMU that did not start', {
  ...WITHIN,
  skip: !canShareVolumes,
}, async () => {
  // A folder that the user of a VM can access.
  const programs = await mkdtemp(join(tmpdir(), 'slipway-broken-'))
  await chmod(programs, 0o755)
  const broken = join(programs, 'broken-qemu')
  const real = hostArchitecture().qemuProgram
  await writeFile(broken, `#!/bin/sh\n[ "$1" = --version ] && exec ${real} --version\necho broken; exit 1\n`)
  await chmod(broken, 0o755)
  const unlucky = await bench.open({ qemuProgram: broken })
  const volume = diskOf(host, { type: 'shared-volume', sizeGib: 1024, blockSize: 0 })
  const spec = specOf(bench, host, { image: hung, disks: [volume] })
  await engine.ensureDisk(volume, call())
  await engine.ensureVm(spec, wanted('off'), call())
  await expect(unlucky.ensureVm(spec, wanted('on'), call())).rejects.toThrow(/did not start: broken/)
  await unlucky.close()
  await rm(programs, { recursive: true })
  const servers = async () =>
    (await bench.processes()).filter(({ commandLine }) => commandLine.includes('virtiofsd'))
  expect(await servers()).toEqual([])
  await engine.ensureVm(spec, wanted('on'), call())
  expect(await servers()).not.toEqual([])
  await engine.removeVm(spec, call(2))
  expect(await servers()).toEqual([])
  await engine.removeDisk(volume, call(2))
})

/** Opens a second engine with its own limits, which is closed when the test ends. */
async function openEngine(options: Parameters<QemuBench['open']>[0]) {
  const other = await bench.open(options)
  onTestFinished(() => other.close())
  return other
}

async function defineVm(changes: Partial<VmSpec> = {}): Promise<VmSpec> {
  const spec = specOf(bench, host, changes)
  await engine.ensureVm(spec, wanted('off'), call())
  return spec
}

function occupy(port: number): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen({ host: bench.publicAddress, port }, () => resolve(server))
  })
}

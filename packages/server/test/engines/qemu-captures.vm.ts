import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { newHostKey } from '../../src/domain/guest/host-key.ts'
import type { CaptureSpec, CaptureStatus, Engine, VmSpec } from '../../src/engines/engine.ts'
import { freeze } from '../../src/engines/qemu/captures/guest-agent.ts'
import { vmSocket } from '../../src/engines/qemu/paths.ts'
import { allow } from '../support/conformance-bench.ts'
import { makeBench, makeKey, type QemuBench } from '../support/qemu-bench.ts'
import { diskOf, specOf, wanted } from '../support/qemu-spec.ts'

const exec = promisify(execFile)
const WITHIN = { timeout: 600_000 }
const signal = AbortSignal.timeout(1_800_000)

let bench: QemuBench
let engine: Engine & { close(): Promise<void> }
let host: string
let first: VmSpec
let second: VmSpec
let image: CaptureSpec
let secondKeyFile: string
const generations = new Map<string, number>()
const call = (id: string) => {
  const generation = (generations.get(id) ?? 0) + 1
  generations.set(id, generation)
  return { generation, signal }
}

beforeAll(async () => {
  bench = await makeBench()
  engine = await bench.open()
  for await (const report of engine.inventory(signal)) host = report.name
  first = specOf(bench, host, { name: 'source', sshHostKey: newHostKey() })
  secondKeyFile = join(bench.dataDir, 'second-key')
  second = specOf(bench, host, {
    name: 'from-image',
    sshHostKey: newHostKey(),
    sshPublicKeys: [await makeKey(secondKeyFile)],
  })
}, 300_000)

afterAll(async () => {
  await engine?.close()
  await bench?.close()
}, 60_000)

async function eventually<T>(probe: () => Promise<T | false | null | undefined>): Promise<T> {
  for (;;) {
    const found = await probe()
    if (found) return found
    await sleep(200)
  }
}

async function start(spec: VmSpec): Promise<string> {
  await engine.ensureVm(spec, wanted('on', [allow(22)], 1), call(spec.id))
  return eventually(async () => {
    const status = await engine.inspectVm(spec, signal)
    if (status?.power === 'crashed') throw new Error(status.detail)
    return status?.power === 'running' && status.sshDestination
  })
}

async function stop(spec: VmSpec): Promise<void> {
  await engine.powerVm(spec, 'shutdown', call(spec.id))
  await eventually(async () => (await engine.inspectVm(spec, signal))?.power === 'off')
}

const captureOf = (from: CaptureSpec['from'], mustFreeze = true): CaptureSpec => ({
  ...{ id: randomUUID(), host, kind: from.kind === 'vm' ? 'image' : 'snapshot' },
  ...{ projectId: first.projectId, sizeGib: 128, from, mustFreeze },
})

const complete = (capture: CaptureSpec): Promise<NonNullable<CaptureStatus['result']>> =>
  eventually(async () => {
    await engine.capture(capture, { generation: 1, signal })
    return (await engine.inspectCapture(capture, signal))?.result
  })

const factsOf = async (destination: string, keyFile: string, hostKey: string) => {
  const command =
    'cat /root/precious /etc/machine-id; dropbearkey -y -f /etc/dropbear/host_ed25519 | grep ^ssh'
  const [precious, machineId, key] = (await bench.ssh(destination, command, { keyFile, hostKey })).split('\n')
  return { precious, machineId, hostKey: key!.split(' ').slice(0, 2).join(' ') }
}

test(
  'a VM from an image of a stopped VM has the files of the image, but its own host key, machine id and SSH keys',
  WITHIN,
  async () => {
    const destination = await start(first)
    await bench.ssh(destination, 'echo of the first > /root/precious; sync')
    const before = await factsOf(destination, bench.sshKeyFile, first.sshHostKey!.publicKey)
    await stop(first)
    image = captureOf({ kind: 'vm', vm: first })
    const { consistency, source, storedBytes } = await complete(image)
    expect(consistency).toBe('off')
    expect(storedBytes).toBeGreaterThan(1024 ** 2)
    second.image = { name: 'own:latest', source, isCustom: true }

    const after = await factsOf(await start(second), secondKeyFile, second.sshHostKey!.publicKey)
    expect(after.precious).toBe('of the first')
    expect(after.machineId).toMatch(/^[0-9a-f]{32}$/)
    expect(after.machineId).not.toBe(before.machineId)
    expect(after.hostKey).not.toBe(before.hostKey)
    const { sshDestination } = (await engine.inspectVm(second, signal))!
    await expect(bench.ssh(sshDestination, 'true')).rejects.toThrow(/denied|publickey/i)
  },
)

test('a VM works after its image, and the source of the image, are deleted', WITHIN, async () => {
  await engine.removeCapture(image, { generation: 2, signal })
  await engine.removeVm(first, call(first.id))
  await stop(second)
  const { precious, machineId } = await factsOf(
    await start({ ...second, isNew: false }),
    secondKeyFile,
    second.sshHostKey!.publicKey,
  )
  expect(precious).toBe('of the first')
  expect(machineId).toMatch(/^[0-9a-f]{32}$/)
})

const inSecond = async (command: string) =>
  bench.ssh((await engine.inspectVm(second, signal))!.sshDestination, command, { keyFile: secondKeyFile })

test(
  'a copy of a running VM that writes to its disk is frozen and clean, and contains no later writes',
  WITHIN,
  async () => {
    const count = 'i=0; while :; do i=$((i+1)); echo $i >>/root/counter; sync; sleep 0.2; done'
    const isCounting = 'until [ -s /root/counter ]; do sleep 0.1; done'
    await inSecond(`(${count}) >/dev/null 2>&1 & ${isCounting}; echo early >/root/early; sync`)
    const live = captureOf({ kind: 'vm', vm: second })
    await engine.capture(live, { generation: 1, signal })
    // The guest writes again as soon as the copy has begun.
    await inSecond('echo late >/root/late; sync')
    const { consistency, storedBytes } = await complete(live)
    expect(consistency).toBe('frozen')
    expect(storedBytes).toBeGreaterThan(1024 ** 2)
    const raw = join(bench.dataDir, 'live.raw')
    const file = join(bench.dataDir, 'qemu/local-a/captures', live.id, 'data.qcow2')
    await exec('qemu-img', ['convert', '-f', 'qcow2', '-O', 'raw', file, raw])
    const { stdout: check } = await exec('e2fsck', ['-f', '-n', raw])
    expect(check).not.toMatch(/recover|error|FIX|Clear/i)
    const list = (await exec('debugfs', ['-R', 'ls -p /root', raw])).stdout
    expect(list).toContain('/early/')
    expect(list).not.toContain('/late/')
    await engine.removeCapture(live, { generation: 2, signal })
  },
)

test('a data disk is copied while it is attached, and restored to a larger disk', WITHIN, async () => {
  const disk = diskOf(host)
  await engine.ensureDisk(disk, { generation: 1, signal })
  await engine.attachDisk(second, disk, call(second.id))
  const find = `for f in /sys/block/vd*/serial; do [ "$(cat $f)" = ${disk.serialNumber} ] && basename $(dirname $f); done`
  await inSecond(`d=/dev/$(${find}); echo payload >$d; sync`)
  const snapshot = captureOf({ kind: 'disk', disk, vm: second })
  await engine.capture(snapshot, { generation: 1, signal })
  await inSecond(`d=/dev/$(${find}); echo changed >$d; sync`)
  const { source, consistency } = await complete(snapshot)
  expect(consistency).toBe('frozen')
  await engine.detachDisk(second, disk, call(second.id))
  await engine.removeDisk(disk, { generation: 2, signal })
  const copy = diskOf(host, { sizeGib: 2 })
  await eventually(async () => {
    await engine.ensureDisk({ ...copy, source: { id: snapshot.id, host, source } }, { generation: 1, signal })
    return !(await engine.inspectDisk(copy, signal))?.isCopying
  })
  await engine.attachDisk(second, copy, call(second.id))
  const found = find.replace(disk.serialNumber, copy.serialNumber)
  expect(await inSecond(`d=$(${found}); head -c 7 /dev/$d; cat /sys/block/$d/size`)).toBe(
    `payload${(2 * 1024 ** 3) / 512}`,
  )
})

test('a guest that an interrupted copy left frozen writes again within 15 seconds', WITHIN, async () => {
  const folder = join(bench.dataDir, 'qemu/local-a/vms', second.id)
  await writeFile(join(folder, 'frozen'), `${Date.now() + 10_000}`)
  expect(await freeze(vmSocket(folder, 'agent'))).toBe('frozen')
  const writing = inSecond('echo thawed >/root/thawed; sync; cat /root/thawed')
  expect(await Promise.race([writing, sleep(3_000, 'frozen')])).toBe('frozen')
  expect(await Promise.race([writing, sleep(15_000, 'still frozen')])).toBe('thawed')
})

/** Ends the agent of the guest after a change of its script, and waits for the condition. */
const changeAgent = (change: string, condition: string) => {
  const changing = `old=$(pidof agent); ${change} /etc/slipway/agent; sync; kill $old`
  return inSecond(`${changing}; until ${condition}; do sleep 0.1; done`)
}
/** The shell condition that init has started the agent again, and that the agent has opened its port. */
const isRestarted = `new=$(pidof agent) && [ "$new" != "$old" ] && [ -e /proc/$new/fd/3 ]`

test('a guest that freezes after its copy gave up waiting is thawed', WITHIN, async () => {
  await changeAgent(`sed -i 's|each_file_system --freeze|sleep 12; &; : >/run/was-frozen|'`, isRestarted)
  const live = captureOf({ kind: 'vm', vm: second }, false)
  expect(await complete(live)).toMatchObject({ consistency: 'crash' })
  const writing = inSecond(
    'until [ -e /run/was-frozen ]; do sleep 0.2; done; echo thawed >/root/later; sync; cat /root/later',
  )
  expect(await Promise.race([writing, sleep(120_000, 'still frozen')])).toBe('thawed')
  await engine.removeCapture(live, { generation: 2, signal })
})

test('a running VM without an agent is copied only if the request allows it', WITHIN, async () => {
  await changeAgent('chmod -x', '! pidof agent >/dev/null')
  const strict = captureOf({ kind: 'vm', vm: second })
  await expect(engine.capture(strict, { generation: 1, signal })).rejects.toMatchObject({ kind: 'unfrozen' })
  expect(await engine.inspectCapture(strict, signal)).toBeNull()
  const files = await readdir(join(bench.dataDir, 'qemu/local-a/vms', second.id))
  expect(files.filter((name) => name.startsWith('capture-') || name === 'frozen')).toEqual([])
  const loose = captureOf({ kind: 'vm', vm: second }, false)
  expect(await complete(loose)).toMatchObject({ consistency: 'crash' })
})

import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { HostReport, VmSample } from '../../src/engines/engine.ts'
import { diskCaptureChecks, vmCaptureChecks } from './captures/checks.ts'
import { allow, ConformanceBench, type EngineUnderTest, expectKind } from './conformance-bench.ts'

type Check = (bench: ConformanceBench) => Promise<void>

/**
 * The checks that every engine must pass, in the order of one VM's life: each check begins where the previous
 * one ended. They wait for results and move no clock. The VM boots three times in total.
 */
export const conformanceChecks: Record<string, Check> = {
  'reports its host with free, clean GPUs': async (bench) => {
    const host = await bench.report()
    expect(host.cpuCores).toBeGreaterThan(0)
    expect(host.memoryGb).toBeGreaterThan(0)
    expect(host.gpus.length > 0).toBe(!bench.subject.isWithoutGpus)
    expect(host.gpus.every((gpu) => gpu.holderVmId === null && gpu.isClean)).toBe(true)
    expect(new Set(host.gpus.map((gpu) => gpu.pciAddress)).size).toBe(host.gpus.length)
  },

  'defines a VM that is off under its firewall, even when called twice': async (bench) => {
    const { engine, spec } = bench
    expect(await bench.inspect()).toBeNull()
    const wanted = bench.wanted('off', 1, [22, 80])
    const call = bench.next()
    const firewall = { firewallGeneration: 1 }
    const defined = { id: spec.id, power: 'off', generation: bench.generation, ...firewall }
    expect(await engine.ensureVm(spec, wanted, call)).toMatchObject({ ...defined, diskIds: [] })
    expect(await engine.ensureVm(spec, wanted, bench.same())).toMatchObject({ ...defined, diskIds: [] })
    expect(await bench.inspect()).toMatchObject({ ...defined, diskIds: [] })
    expect((await bench.report()).vms).toEqual([expect.objectContaining(defined)])
    await bench.expectPorts({ open: [22, 80], shut: [81] })
  },

  'applies a firewall, applies it again, and refuses an older one': async (bench) => {
    const { engine, spec } = bench
    await engine.applyFirewall(spec, [allow(22)], bench.at(2))
    await engine.applyFirewall(spec, [allow(22)], bench.at(2))
    await expectKind('stale', engine.applyFirewall(spec, [], bench.at(1)))
    expect((await bench.inspect())?.firewallGeneration).toBe(2)
    await bench.expectPorts({ open: [22], shut: [80] })
    // A worker that defines a VM may have read the rules before a change.
    const late = await engine.ensureVm(spec, bench.wanted('off', 1, [80]), bench.same())
    expect(late?.firewallGeneration).toBe(2)
    await bench.expectPorts({ open: [22], shut: [80] })
  },

  'powers the VM on until it responds at its SSH destination': async (bench) => {
    const { engine, spec, subject } = bench
    const notified = new Set<string>()
    const unwatch = engine.watch((id) => notified.add(id))
    const started = await engine.ensureVm(spec, bench.wanted('on'), bench.next())
    expect(started).toMatchObject({ id: spec.id, generation: bench.generation, firewallGeneration: 2 })
    expect(started?.power).toMatch(/^(booting|running)$/)
    await engine.ensureVm(spec, bench.wanted('on'), bench.same())
    const status = await bench.until('running')
    // Both ways of reading give the same result.
    expect((await bench.report()).vms).toMatchObject([{ id: spec.id, power: 'running' }])
    await bench.eventually(() => notified.has(spec.id), 'a notification that it runs')
    unwatch()
    const address = spec.network.publicAddress.replaceAll('.', '\\.')
    expect(status.sshDestination).toMatch(new RegExp(`^[a-z]+@${address}(:\\d+)?$`))
    await subject.sshCheck?.(status.sshDestination)
  },

  'does not change a running VM, except its firewall': async (bench) => {
    const { engine, spec } = bench
    const running = { power: 'running', generation: bench.generation, diskIds: [] }
    const changed = { ...spec, disks: [bench.newDisk()] }
    for (const power of ['on', 'off'] as const)
      expect(await engine.ensureVm(changed, bench.wanted(power), bench.same())).toMatchObject(running)
    const other = await engine.ensureVm(spec, bench.wanted('on', 3, [22, 81]), bench.same())
    expect(other).toMatchObject({ ...running, firewallGeneration: 3 })
    await bench.expectPorts({ open: [22, 81], shut: [80] })
    await engine.applyFirewall(spec, [allow(22)], bench.at(4))
    expect(await bench.inspect()).toMatchObject({ ...running, firewallGeneration: 4 })
    await bench.expectPorts({ open: [22], shut: [80, 81] })
  },

  'measures a running VM': async (bench) => {
    const found: VmSample[] = []
    await bench.eventually(async () => {
      for await (const sample of bench.engine.sample(bench.signal)) found.push(sample)
      return found.some(({ vmId }) => vmId === bench.spec.id)
    }, 'a sample of the VM')
    const { host } = found.find(({ vmId }) => vmId === bench.spec.id)!
    expect(host.slipway_vm_cpu_seconds_total).toBeGreaterThanOrEqual(0)
    expect(host.slipway_vm_memory_bytes).toBeGreaterThan(0)
    expect(host.slipway_vm_network_receive_bytes_total).toBeGreaterThanOrEqual(0)
  },

  'replaces the public address of a running VM, and refuses it for an older call': async (bench) => {
    const { engine, spec, subject } = bench
    const { publicAddress } = spec.network
    const other = publicAddress.replace(/\d+$/, (last) => String(Number(last) ^ 128))
    await expectKind('stale', engine.setPublicAddress(spec, other, bench.older()))
    expect(await bench.inspect()).toMatchObject({ publicAddress })
    await engine.setPublicAddress(spec, other, bench.next())
    await engine.setPublicAddress(spec, other, bench.same())
    const moved = await bench.inspect()
    expect(moved).toMatchObject({ publicAddress: other, generation: bench.generation })
    expect(moved?.sshDestination).toContain(`@${other}`)
    if (subject.routesAnyAddress) await subject.sshCheck?.(moved!.sshDestination)
    await engine.setPublicAddress(spec, '', bench.next())
    expect(await bench.inspect()).toMatchObject({ publicAddress: '', sshDestination: '' })
    await engine.setPublicAddress(spec, publicAddress, bench.next())
    const back = await bench.until('running')
    expect(back).toMatchObject({ publicAddress, generation: bench.generation })
    await subject.sshCheck?.(back.sshDestination)
  },

  'shows the VM, and that it holds its GPUs, in the inventory': async (bench) => {
    const { spec, generation } = bench
    const host = await bench.report()
    expect(host.vms.find((vm) => vm.id === spec.id)).toMatchObject({
      ...{ power: 'running', generation, firewallGeneration: 4 },
    })
    for (const gpu of spec.gpus)
      expect(host.gpus.find((found) => found.pciAddress === gpu.pciAddress)).toMatchObject({
        holderVmId: spec.id,
        isClean: false,
      })
  },

  'reports the same hardware of a host in a summary as in a detailed report': async (bench) => {
    const hardwareOf = ({ name, cpuCores, memoryGb, capabilities, gpus }: HostReport) => ({
      ...{ name, cpuCores, memoryGb, capabilities },
      gpus: gpus.map(({ holderVmId, isClean, ...gpu }) => gpu),
    })
    expect(hardwareOf(await bench.report(() => false))).toEqual(hardwareOf(await bench.report()))
  },

  'refuses every change with an older generation': async (bench) => {
    const { engine, spec } = bench
    await expectKind('stale', engine.ensureVm(spec, bench.wanted('on'), bench.older()))
    for (const action of ['shutdown', 'off', 'reset'] as const)
      await expectKind('stale', engine.powerVm(spec, action, bench.older()))
    await expectKind('stale', engine.removeVm(spec, bench.older()))
    expect(await bench.power()).toBe('running')
  },

  'has a serial log that can be read from any offset': async (bench) => {
    const { engine, spec, signal } = bench
    const all = await engine.serialLog(spec, 0, signal)
    const bytes = Buffer.from(all.content)
    expect(bytes.length).toBeGreaterThan(20)
    expect(all.nextOffset).toBe(bytes.length)
    const end = await bench.serialEnd()
    const tail = await engine.serialLog(spec, undefined, signal)
    expect(tail.nextOffset).toBeGreaterThanOrEqual(end)
    expect(Buffer.byteLength(tail.content)).toBeGreaterThanOrEqual(Math.min(end, 64 * 1024))
    let cut = Math.floor(bytes.length / 2)
    // Moves the offset to the beginning of a character: these bytes continue one.
    while ((bytes[cut]! & 0xc0) === 0x80) cut++
    const second = await engine.serialLog(spec, cut, signal)
    expect(second.content.startsWith(bytes.subarray(cut).toString())).toBe(true)
    expect(second.nextOffset).toBe(cut + Buffer.byteLength(second.content))
  },

  'opens the serial console of a running VM, and opens it again after it was closed': async (bench) => {
    const { engine, spec, signal, subject } = bench
    const first = await engine.openConsole(spec, signal)
    first.close()
    await first.ended
    const before = await bench.serialEnd()
    const console = await engine.openConsole(spec, signal)
    let output = ''
    console.onOutput?.((bytes) => {
      output += bytes
    })
    await console.write(Buffer.from('\r'))
    if (subject.consolePrompt)
      await bench.eventually(async () => {
        const { content } = await engine.serialLog(spec, before, signal)
        return subject.consolePrompt!.test(output + content)
      }, 'a prompt on the console')
    console.close()
    await console.ended
  },

  'creates and removes a disk, and refuses every change with an older generation': async (bench) => {
    const { engine, signal } = bench
    const disk = bench.newDisk()
    const inspect = () => engine.inspectDisk(disk, signal)
    const listed = async () => (await bench.report()).disks.find(({ id }) => id === disk.id) ?? null
    expect(await inspect()).toBeNull()
    await engine.ensureDisk(disk, bench.at(2))
    await engine.ensureDisk(disk, bench.at(2))
    await expectKind('stale', engine.ensureDisk(disk, bench.at(1)))
    const created = { id: disk.id, generation: 2, sizeGib: 1 }
    expect([await inspect(), await listed()]).toEqual([created, created])
    await engine.growDisk({ ...disk, sizeGib: 2 }, bench.at(3))
    await engine.growDisk({ ...disk, sizeGib: 2 }, bench.at(3))
    await expectKind('stale', engine.growDisk({ ...disk, sizeGib: 3 }, bench.at(2)))
    const grown = { id: disk.id, generation: 3, sizeGib: 2 }
    expect([await inspect(), await listed()]).toEqual([grown, grown])
    await expectKind('stale', engine.removeDisk(disk, bench.at(2)))
    expect(await inspect()).toEqual(grown)
    await engine.removeDisk(disk, bench.at(4))
    await engine.removeDisk(disk, bench.at(4))
    expect([await inspect(), await listed()]).toEqual([null, null])
    await expectKind('stale', engine.ensureDisk(disk, bench.at(3)))
    expect(await inspect()).toBeNull()
  },

  ...diskCaptureChecks,

  'attaches, grows and detaches a disk of a running VM': async (bench) => {
    const { engine, spec } = bench
    const disk = bench.newDisk()
    await engine.ensureDisk(disk, bench.at(1))
    await expectKind('stale', engine.attachDisk(spec, disk, bench.older()))
    expect(await bench.inspect()).toMatchObject({ diskIds: [] })
    await engine.attachDisk(spec, disk, bench.next())
    await engine.attachDisk(spec, disk, bench.same())
    const changed = { generation: bench.generation, power: 'running' }
    const attached = { ...changed, diskIds: [disk.id] }
    expect(await bench.inspect()).toMatchObject(attached)
    expect((await bench.report()).vms).toMatchObject([changed])
    const { growsOnlyIdleDisks = false } = bench.subject
    const growth = engine.growDisk({ ...disk, sizeGib: 2 }, bench.at(2))
    await (growsOnlyIdleDisks ? expectKind('rejected', growth) : growth)
    const seen = growsOnlyIdleDisks ? { generation: 1, sizeGib: 1 } : { generation: 2, sizeGib: 2 }
    expect((await bench.report()).disks).toContainEqual({ id: disk.id, ...seen })
    await expectKind('stale', engine.detachDisk(spec, disk, bench.older()))
    expect(await bench.inspect()).toMatchObject(attached)
    await engine.detachDisk(spec, disk, bench.next())
    await engine.detachDisk(spec, disk, bench.same())
    expect(await bench.inspect()).toMatchObject({ generation: bench.generation, diskIds: [] })
    await engine.removeDisk(disk, bench.at(3))
  },

  'resets a running VM once for each generation, and notifies watchers': async (bench) => {
    const { engine, spec } = bench
    const [left, stayed] = [new Set<string>(), new Set<string>()]
    const leave = engine.watch((id) => left.add(id))
    const unwatch = engine.watch((id) => stayed.add(id))
    leave()
    const before = await bench.serialEnd()
    await engine.powerVm(spec, 'reset', bench.next())
    if ((await bench.power()) !== 'booting') expect(await bench.serialEnd()).toBeGreaterThan(before)
    await bench.until('running')
    expect(await bench.serialEnd()).toBeGreaterThan(before)
    await bench.eventually(() => stayed.has(spec.id), 'a notification that it runs again')
    expect(left.size).toBe(0)
    unwatch()
    await engine.powerVm(spec, 'reset', bench.same())
    expect(await bench.power()).toBe('running')
  },

  'shuts down on request, and a stopped VM stays stopped': async (bench) => {
    const { engine, spec } = bench
    await engine.powerVm(spec, 'shutdown', bench.next())
    expect(await bench.power()).toMatch(/^(stopping|off)$/)
    await engine.powerVm(spec, 'shutdown', bench.same())
    await bench.until('off')
    expect((await bench.report()).vms).toMatchObject([{ id: spec.id, power: 'off' }])
    await engine.powerVm(spec, 'shutdown', bench.same())
    await engine.powerVm(spec, 'off', bench.same())
    expect(await bench.inspect()).toMatchObject({ power: 'off', sshDestination: '' })
  },

  'replaces the public address of a VM that is off': async (bench) => {
    const { engine, spec } = bench
    const { publicAddress } = spec.network
    await engine.setPublicAddress(spec, '', bench.next())
    expect(await bench.inspect()).toMatchObject({ power: 'off', publicAddress: '' })
    await engine.setPublicAddress(spec, publicAddress, bench.next())
    expect(await bench.inspect()).toMatchObject({ publicAddress, generation: bench.generation })
  },

  'changes the definition of a VM that is off': async (bench) => {
    const { engine, spec } = bench
    const disk = bench.newDisk()
    await engine.ensureDisk(disk, bench.at(1))
    const call = bench.next()
    const changed = { power: 'off', generation: bench.generation, firewallGeneration: 4, diskIds: [disk.id] }
    const withDisk = { ...spec, disks: [disk] }
    expect(await engine.ensureVm(withDisk, bench.wanted('off'), call)).toMatchObject(changed)
    expect(await bench.inspect()).toMatchObject(changed)
    await engine.ensureVm(spec, bench.wanted('off'), bench.next())
    expect(await bench.inspect()).toMatchObject({ diskIds: [] })
    await engine.removeDisk(disk, bench.at(2))
  },

  ...vmCaptureChecks,

  'starts a VM with a disk that was attached while it was off, and powers it off immediately': async (
    bench,
  ) => {
    const { engine, spec } = bench
    const disk = { ...bench.newDisk(), mode: 'read-only' as const }
    await engine.ensureDisk(disk, bench.at(1))
    await engine.attachDisk(spec, disk, bench.next())
    expect(await bench.inspect()).toMatchObject({ power: 'off', diskIds: [disk.id] })
    await engine.ensureVm({ ...spec, disks: [disk] }, bench.wanted('on'), bench.next())
    expect(await bench.until('running')).toMatchObject({ firewallGeneration: 4, diskIds: [disk.id] })
    await engine.powerVm(spec, 'off', bench.next())
    expect(await bench.power()).toMatch(/^(stopping|off)$/)
    await bench.until('off')
    await engine.detachDisk(spec, disk, bench.next())
    await engine.removeDisk(disk, bench.at(2))
  },

  'removes the VM, leaves nothing, and never recreates it for an older call': async (bench) => {
    const { engine, spec } = bench
    await engine.removeVm(spec, bench.next())
    await engine.removeVm(spec, bench.same())
    expect(await bench.inspect()).toBeNull()
    expect((await bench.report()).vms).toEqual([])
    await bench.eventually(async () => {
      const { gpus } = await bench.report()
      return gpus.every((gpu) => gpu.holderVmId === null && gpu.isClean)
    }, 'GPUs are free and clean')
    await expectKind('stale', engine.ensureVm(spec, bench.wanted('on'), bench.older()))
    await expectKind('stale', engine.removeVm(spec, bench.older()))
    expect(await bench.inspect()).toBeNull()
  },

  'never creates the OS disk of a VM that is not new': async (bench) => {
    const { engine, signal } = bench
    const known = { ...bench.spec, id: randomUUID(), isNew: false }
    await expectKind('lost', engine.ensureVm(known, bench.wanted('on'), bench.at(1)))
    expect(await engine.inspectVm(known, signal)).toBeNull()
  },

  'reports missing resources, and accepts the removal of resources that never existed': async (bench) => {
    const { engine, subject, signal } = bench
    const ghost = { id: randomUUID(), host: subject.host }
    const call = bench.at(1)
    await expectKind('missing', engine.powerVm(ghost, 'reset', call))
    await expectKind('missing', engine.applyFirewall(ghost, [], call))
    await expectKind('missing', engine.attachDisk(ghost, bench.newDisk(), call))
    await expectKind('missing', engine.serialLog(ghost, undefined, signal))
    await expectKind('missing', engine.growDisk(bench.newDisk(), call))
    await engine.removeVm({ id: randomUUID(), host: subject.host }, call)
    await engine.removeDisk({ id: randomUUID(), host: '' }, call)
    await engine.removeCapture(ghost, call)
    expect(await engine.inspectVm(ghost, signal)).toBeNull()
    expect(await engine.inspectDisk(ghost, signal)).toBeNull()
    expect(await engine.inspectCapture(ghost, signal)).toBeNull()
  },
}

/** Runs all checks against an engine. */
export function engineConformance(name: string, make: () => Promise<EngineUnderTest>): void {
  let bench: ConformanceBench
  beforeAll(async () => {
    bench = await ConformanceBench.open(await make())
  }, 300_000)
  afterAll(() => bench?.subject.close(), 60_000)
  for (const [what, check] of Object.entries(conformanceChecks))
    test(`the ${name} engine ${what}`, { timeout: 300_000 }, () => check(bench))
}

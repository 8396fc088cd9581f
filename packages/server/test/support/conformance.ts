import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { sshKey } from '@slipway/testing/ssh-key.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { CompiledRule } from '../../src/domain/firewall.ts'
import type {
  AttachedDisk,
  Engine,
  EngineErrorKind,
  HostReport,
  VmSpec,
  VmStatus,
} from '../../src/engines/engine.ts'

export interface EngineUnderTest {
  engine: Engine
  host: string
  image: VmSpec['image']
  /** What the control plane would have given the VM. */
  publicAddress?: string
  sshPublicKey?: string
  /** Proves, where guests are real, that the destination answers. */
  sshCheck?: (destination: string) => Promise<void>
  /** How long any one outcome may take. */
  patienceMs?: number
  close(): Promise<void>
}

/** What every engine must do. It waits for outcomes and turns no clock; three boots in all. */
export function engineConformance(name: string, make: () => Promise<EngineUnderTest>): void {
  let subject: EngineUnderTest
  let engine: Engine
  let spec: VmSpec
  let generation = 0
  const signal = AbortSignal.timeout(900_000)
  const next = () => ({ generation: ++generation, signal })
  const same = () => ({ generation, signal })
  const older = () => ({ generation: generation - 1, signal })

  beforeAll(async () => {
    subject = await make()
    engine = subject.engine
    const gpu = (await report()).gpus[0]
    spec = {
      ...{ id: randomUUID(), host: subject.host, name: 'conformance-1', projectId: randomUUID() },
      ...{ isNew: true, type: 'a100-80gb.1x', cpuCores: 12, memoryGb: 120, osDiskGib: 128, scratchGb: 0 },
      gpus: gpu ? [{ pciAddress: gpu.pciAddress, model: gpu.model }] : [],
      image: subject.image,
      sshPublicKey: subject.sshPublicKey ?? sshKey,
      startupScript: '#!/bin/sh\necho started\n',
      shutdownScript: '',
      network: {
        networkId: randomUUID(),
        macAddress: '52:54:00:c0:f0:01',
        privateAddress: '172.27.0.10',
        subnetCidr: '172.27.0.0/20',
        gateway: '172.27.0.1',
        publicAddress: subject.publicAddress ?? '127.100.0.7',
      },
      disks: [],
    }
  }, 300_000)
  afterAll(() => subject?.close(), 60_000)

  const PATIENCE_MS = 280_000
  const within = { timeout: 300_000 }

  test(`the ${name} engine reports its host with free, clean GPUs`, within, async () => {
    const host = await report()
    expect(host.name).toBe(subject.host)
    expect(host.cpuCores).toBeGreaterThan(0)
    expect(host.memoryGb).toBeGreaterThan(0)
    expect(host.gpus.length).toBeGreaterThan(0)
    expect(host.gpus.every((gpu) => gpu.holderVmId === null && gpu.isClean)).toBe(true)
    expect(new Set(host.gpus.map((gpu) => gpu.pciAddress)).size).toBe(host.gpus.length)
  })

  test(`the ${name} engine defines a VM that is off, once or twice alike`, within, async () => {
    expect(await inspect()).toBeNull()
    await engine.ensureVm(spec, next())
    await engine.ensureVm(spec, same())
    expect(await inspect()).toMatchObject({ id: spec.id, power: 'off', generation, diskIds: [] })
  })

  test(`the ${name} engine takes a firewall, takes it again, and refuses an older one`, within, async () => {
    await engine.applyFirewall(spec, [allow([22, 22])], { generation: 2, signal })
    await engine.applyFirewall(spec, [allow([22, 22])], { generation: 2, signal })
    await expectKind('stale', engine.applyFirewall(spec, [], { generation: 1, signal }))
    expect((await inspect())?.firewallGeneration).toBe(2)
  })

  test(`the ${name} engine powers it on until it answers at its SSH destination`, within, async () => {
    const heard = new Set<string>()
    const unwatch = engine.watch((id) => heard.add(id))
    await engine.powerVm(spec, 'on', next())
    await engine.powerVm(spec, 'on', same())
    const status = await until('running')
    unwatch()
    const address = spec.network.publicAddress.replaceAll('.', '\\.')
    expect(status.sshDestination).toMatch(new RegExp(`^[a-z]+@${address}(:\\d+)?$`))
    await subject.sshCheck?.(status.sshDestination)
    await engine.powerVm(spec, 'on', same())
    expect((await inspect())?.power).toBe('running')
  })

  test(`the ${name} engine shows the VM and the holder of its GPUs in the inventory`, within, async () => {
    const host = await report()
    expect(host.vms.find((vm) => vm.id === spec.id)).toMatchObject({
      ...{ power: 'running', generation, firewallGeneration: 2, diskIds: [] },
    })
    for (const gpu of spec.gpus)
      expect(host.gpus.find((found) => found.pciAddress === gpu.pciAddress)).toMatchObject({
        holderVmId: spec.id,
        isClean: false,
      })
  })

  test(`the ${name} engine refuses every change of an older generation`, within, async () => {
    await expectKind('stale', engine.ensureVm(spec, older()))
    await expectKind('stale', engine.powerVm(spec, 'off', older()))
    await expectKind('stale', engine.removeVm(spec, older()))
    expect((await inspect())?.power).toBe('running')
  })

  test(`the ${name} engine has a serial log that is read on from any offset`, within, async () => {
    const all = await engine.serialLog(spec, 0, signal)
    expect(all.content.length).toBeGreaterThan(0)
    const tail = await engine.serialLog(spec, undefined, signal)
    expect(tail.content.length).toBeGreaterThan(0)
    const rest = await engine.serialLog(spec, all.nextOffset, signal)
    expect(rest.nextOffset).toBeGreaterThanOrEqual(all.nextOffset)
    const cut = Math.floor(all.nextOffset / 2)
    const second = await engine.serialLog(spec, cut, signal)
    expect(
      all.content.endsWith(second.content.slice(0, 8)) || all.content.includes(second.content.slice(0, 8)),
    ).toBe(true)
  })

  test(`the ${name} engine attaches, grows and detaches a disk of a running VM`, within, async () => {
    const disk = newDisk()
    const diskCall = { generation: 1, signal }
    await engine.ensureDisk(disk, diskCall)
    await engine.ensureDisk(disk, diskCall)
    expect((await report()).disks).toContainEqual({ id: disk.id, generation: 1, sizeGib: 1 })
    await engine.attachDisk(spec, disk, next())
    await engine.attachDisk(spec, disk, same())
    expect((await inspect())?.diskIds).toEqual([disk.id])
    const larger = { ...disk, sizeGib: 2 }
    await engine.growDisk(larger, { generation: 2, signal })
    await engine.growDisk(larger, { generation: 2, signal })
    expect((await report()).disks).toContainEqual({ id: disk.id, generation: 2, sizeGib: 2 })
    await engine.detachDisk(spec, disk, next())
    await engine.detachDisk(spec, disk, same())
    expect((await inspect())?.diskIds).toEqual([])
    await expectKind('stale', engine.growDisk({ ...disk, sizeGib: 3 }, { generation: 1, signal }))
    await engine.removeDisk(disk, { generation: 3, signal })
    await engine.removeDisk(disk, { generation: 3, signal })
    expect((await report()).disks.some((found) => found.id === disk.id)).toBe(false)
    await expectKind('stale', engine.ensureDisk(disk, { generation: 2, signal }))
  })

  test(`the ${name} engine resets a running VM, which then comes up again`, within, async () => {
    await engine.powerVm(spec, 'reset', next())
    await until('running')
  })

  test(`the ${name} engine shuts down on request, and a stopped VM stays stopped`, within, async () => {
    await engine.powerVm(spec, 'shutdown', next())
    await engine.powerVm(spec, 'shutdown', same())
    await until('off')
    await engine.powerVm(spec, 'shutdown', same())
    await engine.powerVm(spec, 'off', same())
    const status = await inspect()
    expect(status).toMatchObject({ power: 'off', sshDestination: '' })
  })

  test(
    `the ${name} engine starts again with a disk that was attached while it was off, and loses power at once`,
    within,
    async () => {
      const disk = newDisk()
      await engine.ensureDisk(disk, { generation: 1, signal })
      await engine.attachDisk(spec, { ...disk, mode: 'read-only' }, next())
      await engine.powerVm(spec, 'on', next())
      expect(await until('running')).toMatchObject({ firewallGeneration: 2, diskIds: [disk.id] })
      await engine.powerVm(spec, 'off', next())
      await until('off')
      await engine.detachDisk(spec, disk, next())
      await engine.removeDisk(disk, { generation: 2, signal })
    },
  )

  test(
    `the ${name} engine removes the VM, leaves nothing, and never lets an older call bring it back`,
    within,
    async () => {
      await engine.removeVm(spec, next())
      await engine.removeVm(spec, same())
      expect(await inspect()).toBeNull()
      const host = await report()
      expect(host.vms.some((vm) => vm.id === spec.id)).toBe(false)
      const deadline = Date.now() + (subject.patienceMs ?? PATIENCE_MS)
      for (;;) {
        const { gpus } = await report()
        if (gpus.every((gpu) => gpu.holderVmId === null && gpu.isClean)) break
        if (Date.now() > deadline) throw new Error(`GPUs are not free and clean: ${JSON.stringify(gpus)}`)
        await sleep(100)
      }
      await expectKind('stale', engine.ensureVm(spec, older()))
      await expectKind('stale', engine.removeVm(spec, older()))
      expect(await inspect()).toBeNull()
    },
  )

  test(`the ${name} engine never makes the OS disk of a VM that is not new`, within, async () => {
    const known = { ...spec, id: randomUUID(), isNew: false }
    await expectKind('lost', engine.ensureVm(known, { generation: 1, signal }))
    expect(await engine.inspectVm(known, signal)).toBeNull()
  })

  test(`the ${name} engine says what is missing, and lets go of what was never there`, within, async () => {
    const ghost = { id: randomUUID(), host: subject.host }
    const call = { generation: 1, signal }
    await expectKind('missing', engine.powerVm(ghost, 'on', call))
    await expectKind('missing', engine.applyFirewall(ghost, [], call))
    await expectKind('missing', engine.attachDisk(ghost, newDisk(), call))
    await expectKind('missing', engine.serialLog(ghost, undefined, signal))
    await expectKind('missing', engine.growDisk(newDisk(), call))
    await engine.removeVm({ id: randomUUID(), host: subject.host }, call)
    await engine.removeDisk({ id: randomUUID(), host: '' }, call)
    expect(await engine.inspectVm(ghost, signal)).toBeNull()
  })

  async function report(): Promise<HostReport> {
    for await (const host of engine.inventory(signal)) if (host.name === subject.host) return host
    throw new Error(`no host ${subject.host} in the inventory`)
  }

  function inspect(): Promise<VmStatus | null> {
    return engine.inspectVm({ id: spec.id, host: spec.host }, signal)
  }

  async function until(power: VmStatus['power']): Promise<VmStatus> {
    const deadline = Date.now() + (subject.patienceMs ?? PATIENCE_MS)
    for (;;) {
      const status = await inspect()
      if (status?.power === power) return status
      if (status?.power === 'crashed') throw new Error(`crashed: ${status.detail}`)
      if (Date.now() > deadline) throw new Error(`not ${power} in time: ${JSON.stringify(status)}`)
      await sleep(Math.min(status?.etaMs ?? 100, 200))
    }
  }

  function newDisk(): AttachedDisk {
    const id = randomUUID()
    return {
      ...{ id, host: subject.host, type: 'persistent-ssd', sizeGib: 1, blockSize: 512 },
      ...{ serialNumber: id.replaceAll('-', '').slice(-20), mode: 'read-write' },
    }
  }
}

function allow(ports: [number, number]): CompiledRule {
  return {
    ...{ ruleId: randomUUID(), action: 'allow', direction: 'ingress', protocols: ['tcp'] },
    ...{ peers: ['0.0.0.0/0'], sourcePorts: [], destinationPorts: [ports] },
  }
}

async function expectKind(kind: EngineErrorKind, work: Promise<unknown>): Promise<void> {
  await expect(work).rejects.toMatchObject({ name: 'EngineError', kind })
}

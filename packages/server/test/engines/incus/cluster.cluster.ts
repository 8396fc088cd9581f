import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { DiskSpec, VmSpec } from '../../../src/engines/engine.ts'
import { ClusterBench, retrying, untilRefused, wanted } from '../../support/incus/cluster-bench.ts'
import { whyNoIncus } from '../../support/incus-bench.ts'

const within = { timeout: 300_000 }

describe.skipIf(whyNoIncus)(`three members ${whyNoIncus}`, () => {
  let cluster: ClusterBench
  beforeAll(async () => {
    cluster = await ClusterBench.open()
  }, 300_000)
  afterAll(() => cluster?.close(), 60_000)

  test('a cluster creates each VM on its member, and still works when one is killed', within, async () => {
    const specs = ['m1', 'm2', 'm3'].map((host) => cluster.specOn(host))
    for (const spec of specs)
      expect(await retrying(() => cluster.engine.ensureVm(spec, wanted, cluster.at(1)))).toMatchObject({
        power: 'running',
      })
    const before = await cluster.everyReport()
    for (const spec of specs)
      expect(before.get(spec.host)!.vms).toMatchObject([{ id: spec.id, power: 'running', generation: 1 }])

    const [, second] = cluster.members
    const [first, lost, third] = specs as [VmSpec, VmSpec, VmSpec]
    const guestPid = await second!.pidOf(`vm-${lost.id}`)
    await second!.kill()
    // The member does not respond, but its guest still runs and must not count as stopped.
    process.kill(guestPid, 0)
    await expect(cluster.engine.inspectVm(lost, cluster.signal)).rejects.toMatchObject({
      kind: 'unavailable',
    })
    await expect(cluster.engine.ensureVm(lost, wanted, cluster.at(2))).rejects.toMatchObject({
      kind: 'unavailable',
    })
    expect((await retrying(() => cluster.reports())).has('m2')).toBe(false)

    // VMs of the other members can be stopped, started and removed.
    await retrying(() => cluster.engine.powerVm(first, 'off', cluster.at(2)))
    const again = { ...first, isNew: false }
    expect(await retrying(() => cluster.engine.ensureVm(again, wanted, cluster.at(3)))).toMatchObject({
      power: 'running',
    })
    await retrying(() => cluster.engine.removeVm(third, cluster.at(2)))
    expect(await retrying(() => cluster.engine.inspectVm(third, cluster.signal))).toBeNull()
    // A new VM does not wait for the dead member.
    const late = cluster.specOn('m3')
    expect(await retrying(() => cluster.engine.ensureVm(late, wanted, cluster.at(1)))).toMatchObject({
      power: 'running',
    })

    await second!.start()
    expect(await retrying(() => cluster.engine.inspectVm(lost, cluster.signal))).toMatchObject({
      ...{ power: 'running', generation: 1, firewallGeneration: 1 },
    })
    expect(await second!.pidOf(`vm-${lost.id}`)).toBe(guestPid)
    const after = await cluster.everyReport()
    for (const spec of [first, lost, late]) expect(after.get(spec.host)!.vms).toMatchObject([{ id: spec.id }])
    for (const spec of [first, lost, late]) await retrying(() => cluster.engine.removeVm(spec, cluster.at(9)))
    for (const { vms } of (await cluster.everyReport()).values()) expect(vms).toEqual([])
  })

  test(
    'a disk on local storage is created on the member of its first VM, and can be used only there',
    within,
    async () => {
      const { engine, at, signal } = cluster
      const disk: DiskSpec = {
        ...{ id: randomUUID(), host: '', sizeGib: 1, blockSize: 512, serialNumber: 'local-disk' },
        type: 'persistent-ssd',
      }
      await retrying(() => engine.ensureDisk(disk, at(1)))
      await retrying(() => engine.growDisk({ ...disk, sizeGib: 2 }, at(2)))
      expect(await retrying(() => engine.inspectDisk(disk, signal))).toEqual({
        ...{ id: disk.id, generation: 2, sizeGib: 2 },
      })
      expect(await untilRefused(() => engine.removeDisk(disk, at(1)))).toMatchObject({ kind: 'stale' })
      const volumes = async () => {
        const args = ['--project', 'slipway', 'storage', 'volume', 'list', 'default', 'type=custom']
        const rows = JSON.parse(await cluster.members[0]!.cli(...args, '--format', 'json'))
        return (rows as { name: string; location: string }[]).map(({ name, location }) => [name, location])
      }
      expect(await volumes()).toEqual([])

      const attached = { ...disk, sizeGib: 2, mode: 'read-write' } as const
      const [second, third] = [{ ...cluster.specOn('m2'), disks: [attached] }, cluster.specOn('m3')]
      for (const spec of [second, third]) await retrying(() => engine.ensureVm(spec, wanted, at(1)))
      expect(await volumes()).toEqual([[`disk-${disk.id}`, 'm2']])
      expect(await retrying(() => engine.inspectVm(second, signal))).toMatchObject({ diskIds: [disk.id] })
      const reported = [...(await cluster.everyReport()).values()].flatMap(({ disks }) => disks)
      expect(reported).toEqual([{ id: disk.id, generation: 2, sizeGib: 2 }])
      const elsewhere = await untilRefused(() => engine.attachDisk(third, attached, at(2)))
      expect(elsewhere.message).toMatch(/is on m2, but the VM is on m3/)

      for (const spec of [second, third]) await retrying(() => engine.removeVm(spec, at(9)))
      await retrying(() => engine.removeDisk(disk, at(3)))
      expect(await retrying(() => engine.inspectDisk(disk, signal))).toBeNull()
      expect(await untilRefused(() => engine.ensureDisk(disk, at(2)))).toMatchObject({ kind: 'stale' })
    },
  )

  test(
    'two workers that use different members create one VM, and the later one changes nothing',
    within,
    async () => {
      const other = await cluster.workerAt(1)
      const spec = cluster.specOn('m3')
      const [older, newer] = await Promise.allSettled([
        cluster.engine.ensureVm(spec, wanted, cluster.at(1)),
        retrying(() => other.ensureVm(spec, wanted, cluster.at(2))),
      ])
      expect(newer).toMatchObject({ value: { power: 'running', generation: 2 } })
      if (older.status === 'rejected') expect(older.reason).toMatchObject({ name: 'EngineError' })
      expect((await cluster.everyReport()).get('m3')!.vms).toMatchObject([{ id: spec.id, generation: 2 }])
      await retrying(() => cluster.engine.removeVm(spec, cluster.at(3)))
      const late = await untilRefused(() => other.ensureVm(spec, wanted, cluster.at(2)))
      expect(late).toMatchObject({ kind: 'stale' })
      await expect(other.powerVm(spec, 'reset', cluster.at(2))).rejects.toMatchObject({ name: 'EngineError' })
      expect((await cluster.everyReport()).get('m3')!.vms).toEqual([])
      await other.close()
    },
  )
})

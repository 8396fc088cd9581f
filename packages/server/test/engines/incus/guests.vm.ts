import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { newHostKey } from '../../../src/domain/guest/host-key.ts'
import { engineConformance } from '../../support/conformance.ts'
import { ConformanceBench, type EngineUnderTest } from '../../support/conformance-bench.ts'
import { VmBench } from '../../support/incus/vm-bench.ts'
import { whyNoVms } from '../../support/incus/vm-daemon.ts'

const publicAddress = '203.0.113.7'
const size = { cpuCores: 2, memoryGb: 1, osDiskGib: 8 }
const patienceMs = 280_000

function subjectOf({ bench, engine, image, sshPublicKey, ssh }: VmBench): EngineUnderTest {
  return {
    ...{
      engine,
      host: 'm1',
      image,
      size,
      isWithoutGpus: true,
      growsOnlyIdleDisks: true,
      publicAddress,
      sshPublicKey,
      patienceMs,
    },
    async sshCheck(destination) {
      expect(await ssh(destination, 'hostname')).toBe('conformance-1')
    },
    async isOpen(_vmId, port) {
      const rule = `ip saddr 0.0.0.0/0 ip daddr 172.27.0.10 tcp dport ${port} accept`
      return (await bench.members[0]!.packetFilter()).includes(rule)
    },
    close: async () => {},
  }
}

describe.skipIf(whyNoVms)(`Incus virtual machines ${whyNoVms}`, () => {
  let vms: VmBench
  beforeAll(async () => {
    vms = await VmBench.open()
  }, 300_000)
  afterAll(() => vms?.close(), 60_000)

  engineConformance('incus', async () => subjectOf(vms))

  describe('a guest', () => {
    let vm: ConformanceBench
    let destination: string
    const inGuest = (command: string) => vms.ssh(destination, command, vm.spec.sshHostKey!.publicKey)
    const qemu = () => vms.member.pidOf(`vm-${vm.spec.id}`)
    const serial = async () => (await vms.engine.serialLog(vm.spec, undefined, vm.signal)).content
    const crashed = () => vm.eventually(async () => (await vm.power()) === 'crashed', 'its end is noticed')

    beforeAll(async () => {
      vm = await ConformanceBench.open(subjectOf(vms))
      vm.spec.sshHostKey = newHostKey()
      vm.spec.startupScript = '#!/bin/sh\necho the startup script ran\n'
      await vms.engine.ensureVm(vm.spec, vm.wanted('on'), vm.next())
      destination = (await vm.until('running')).sshDestination
    }, 300_000)

    test('has the cores, memory, OS disk, address and startup script of its VM', async () => {
      expect(await inGuest('cat /sys/class/dmi/id/product_name /sys/class/dmi/id/board_name')).toContain(
        'Incus',
      )
      expect(Number(await inGuest('nproc'))).toBe(2)
      const kib = Number(await inGuest("sed -n 's/MemTotal: *\\([0-9]*\\) kB/\\1/p' /proc/meminfo"))
      expect(kib / 1024 ** 2).toBeGreaterThan(0.85)
      expect(kib / 1024 ** 2).toBeLessThanOrEqual(1)
      expect(Number(await inGuest('cat /sys/block/sda/size')) * 512).toBe(8 * 1024 ** 3)
      expect(await inGuest('ip -4 -o address show eth0')).toContain(' 172.27.0.10/20 ')
      expect(await inGuest('cat /sys/class/net/eth0/address')).toBe(vm.spec.network.macAddress)
      await vm.eventually(async () => (await serial()).includes('the startup script ran'), 'its script')
      // `inGuest` checks that the guest has its own host key by now.
      const instance = await vms.member.cli('query', `/1.0/instances/vm-${vm.spec.id}?project=slipway`)
      expect(instance).not.toContain('PRIVATE KEY')
    })

    test('identifies a disk that is attached while it runs by its serial number, and keeps what it writes', async () => {
      const disk = vm.newDisk()
      await vms.engine.ensureDisk(disk, vm.at(1))
      await vms.engine.attachDisk(vm.spec, disk, vm.next())
      const named = `grep -l incus_${disk.serialNumber} /sys/block/sd*/device/vpd_pg80`
      const device = await vm.eventually(
        async () => /sd[a-z]/.exec(await inGuest(`${named} || true`))?.[0] ?? false,
        'the disk in the guest',
      )
      expect(Number(await inGuest(`cat /sys/block/${device}/size`)) * 512).toBe(1024 ** 3)
      await inGuest(`echo kept on the disk >/dev/${device}; echo kept on the OS disk >/root/kept; sync`)
      vm.spec.disks.push(disk)

      // Killing QEMU ends the guest, and the data that it wrote is there when it starts again.
      process.kill(await qemu(), 'SIGKILL')
      await crashed()
      await vm.eventually(async () => (await vm.report()).vms[0]?.power === 'crashed', 'the inventory')
      await vms.engine.powerVm(vm.spec, 'reset', vm.next())
      await vm.until('running')
      expect(await inGuest('cat /root/kept')).toBe('kept on the OS disk')
      const found = /sd[a-z]/.exec(await inGuest(named))![0]
      expect(await inGuest(`head -n 1 /dev/${found}`)).toBe('kept on the disk')
    })

    test('that powers itself off counts as crashed, and leaves nothing when it is removed', async () => {
      await inGuest('poweroff')
      await crashed()
      await vms.engine.removeVm(vm.spec, vm.next())
      expect(await vm.inspect()).toBeNull()
      for (const disk of vm.spec.disks) await vms.engine.removeDisk(disk, vm.at(2))
      expect(await vms.member.instances()).toEqual([])
      expect(await vms.guestProcesses()).toEqual([])
    })
  })
})

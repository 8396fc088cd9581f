import { chmod, link as hardLink, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type AttachedDisk, EngineError, type VmSpec } from '../../engine.ts'
import type { QemuContext } from '../context.ts'
import { vmSocket } from '../paths.ts'
import {
  blockNode,
  deviceId,
  diskDevice,
  diskLink,
  slotNames,
  volumeDevice,
  volumeSocket,
} from '../process/machine.ts'
import { QmpError, type QmpSession, withQmp } from '../process/qmp.ts'
import { serveVolume } from './volumes.ts'

/**
 * More than the five seconds that a guest's kernel waits before it releases a slot, in case the request is
 * cancelled.
 */
const unplugLimitMs = 20_000

/**
 * Makes a disk accessible to the VM's QEMU, through a hard link in the VM's folder or the socket of the
 * volume's virtiofsd. The server remains the owner of a read-only disk, because several VMs can share it.
 */
export async function offerDisk(ctx: QemuContext, vmId: string, disk: AttachedDisk): Promise<void> {
  const folder = ctx.records.folder(vmId)
  if (disk.type === 'shared-volume') {
    const socket = volumeSocket(vmId, disk.id)
    const groups = await ctx.isolation.groupsOf(vmId)
    await serveVolume(folder, socket, ctx.disks.shareFolder(disk.id), groups)
    return ctx.isolation.give(folder, socket)
  }
  const link = diskLink(disk.id)
  await rm(join(folder, link), { force: true })
  await hardLink(ctx.disks.imageFile(disk.id), join(folder, link))
  if (disk.mode === 'read-write') return ctx.isolation.give(folder, link)
  await chmod(join(folder, link), 0o444)
}

/** Plugs a disk into a running VM, unless it is already plugged in. */
export async function plug(ctx: QemuContext, vmId: string, disk: AttachedDisk): Promise<void> {
  await withVmQmp(ctx, vmId, async (qmp) => {
    if (await isPlugged(qmp, disk)) return
    await dropBackend(qmp, disk)
    await offerDisk(ctx, vmId, disk)
    if (disk.type === 'shared-volume') {
      const path = volumeSocket(vmId, disk.id)
      await qmp.execute('chardev-add', {
        id: `chr-${deviceId(disk.id)}`,
        backend: {
          type: 'socket',
          data: { server: false, addr: { type: 'unix', data: { path } } },
        },
      })
    } else await qmp.execute('blockdev-add', blockNode(disk))
    await addToFreeSlot(qmp, disk)
  })
}

/** Unplugs a disk from a running VM, and waits until the guest has released it. */
export async function unplug(ctx: QemuContext, vmId: string, disk: AttachedDisk): Promise<void> {
  await withVmQmp(ctx, vmId, async (qmp) => {
    const until = Date.now() + unplugLimitMs
    while (await isPlugged(qmp, disk)) {
      if (Date.now() > until)
        throw new EngineError('unavailable', `the guest did not release disk ${disk.id} in time`)
      await qmp.execute('device_del', { id: qdevId(disk) }).catch(ignoreBusyGuest)
      await sleep(250)
    }
    await dropBackend(qmp, disk)
  })
  await rm(join(ctx.records.folder(vmId), diskLink(disk.id)), { force: true })
}

export async function resizeInQemu(ctx: QemuContext, vmId: string, diskId: string, sizeBytes: number) {
  await withVmQmp(ctx, vmId, (qmp) =>
    qmp.execute('block_resize', { 'node-name': `node-${deviceId(diskId)}`, size: sizeBytes }),
  )
}

/** Runs a QMP session with the VM's QEMU. Throws `unavailable` if QEMU rejects a command. */
export async function withVmQmp<T>(
  ctx: QemuContext,
  vmId: string,
  work: (qmp: QmpSession) => Promise<T>,
): Promise<T> {
  try {
    return await withQmp(vmSocket(ctx.records.folder(vmId), 'qmp'), ctx.options.qmpTimeoutMs, work)
  } catch (error) {
    if (error instanceof QmpError) throw new EngineError('unavailable', error.message, { cause: error })
    throw error
  }
}

/** Sets the bandwidth limits of a VM's disks before the guest starts. */
export async function limitDisks(qmp: QmpSession, { osDiskMbps, disks }: VmSpec): Promise<void> {
  await limitDisk(qmp, 'os-device', osDiskMbps)
  for (const disk of disks) await limitDisk(qmp, qdevId(disk), disk.mbps)
}

async function limitDisk(qmp: QmpSession, device: string, mbps: number | null | undefined): Promise<void> {
  if (!mbps) return
  const bytesPerSecond = Math.round(mbps * 1e6)
  await qmp.execute('block_set_io_throttle', {
    // The PCI device itself has no backend, but the virtio device inside it does.
    id: `/machine/peripheral/${device}/virtio-backend`,
    ...{ bps: 0, bps_rd: bytesPerSecond, bps_wr: bytesPerSecond },
    ...{ iops: 0, iops_rd: 0, iops_wr: 0 },
  })
}

async function addToFreeSlot(qmp: QmpSession, disk: AttachedDisk): Promise<void> {
  let failure: unknown
  for (const slot of slotNames(disk.type)) {
    const device = disk.type === 'shared-volume' ? volumeDevice(disk, slot) : diskDevice(disk, slot)
    try {
      await qmp.execute('device_add', device)
      return await limitDisk(qmp, qdevId(disk), disk.mbps)
    } catch (error) {
      failure = error
      if (!(error instanceof QmpError) || !/slot|occupied/.test(error.message)) break
    }
  }
  await dropBackend(qmp, disk)
  throw failure
}

async function isPlugged(qmp: QmpSession, disk: AttachedDisk): Promise<boolean> {
  const devices = await qmp.execute<{ name: string }[]>('qom-list', { path: '/machine/peripheral' })
  return devices.some((device) => device.name === qdevId(disk))
}

/** Removes the disk's backend, which a server that died while plugging may have left behind. */
async function dropBackend(qmp: QmpSession, disk: AttachedDisk): Promise<void> {
  const command =
    disk.type === 'shared-volume'
      ? qmp.execute('chardev-remove', { id: `chr-${deviceId(disk.id)}` })
      : qmp.execute('blockdev-del', { 'node-name': `node-${deviceId(disk.id)}` })
  await command.catch((error) => {
    if (!(error instanceof QmpError)) throw error
  })
}

function qdevId(disk: AttachedDisk): string {
  return `${disk.type === 'shared-volume' ? 'volume' : 'disk'}-${deviceId(disk.id)}`
}

/**
 * Ignores errors that show that the guest is still plugging in the disk, is already releasing it, or has
 * released it.
 */
function ignoreBusyGuest(error: unknown): void {
  if (!(error instanceof QmpError) || !/process of unplug|guest is busy|not found/.test(error.message))
    throw error
}

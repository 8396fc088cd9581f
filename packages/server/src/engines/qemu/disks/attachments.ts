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

/** A guest's kernel waits five seconds before it releases a slot, in case the request was a mistake. */
const unplugLimitMs = 20_000

/**
 * Makes a disk accessible to the VM's QEMU, by a link in its folder or by the socket of the volume's server. A read-only
 * disk, which several VMs can share, keeps the server as its owner.
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

/** Plugs a disk into a running VM, unless it is already there. */
export async function plug(ctx: QemuContext, vmId: string, disk: AttachedDisk): Promise<void> {
  await talk(ctx, vmId, async (qmp) => {
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
  await talk(ctx, vmId, async (qmp) => {
    const until = Date.now() + unplugLimitMs
    while (await isPlugged(qmp, disk)) {
      if (Date.now() > until)
        throw new EngineError('unavailable', `the guest does not release disk ${disk.id}`)
      await qmp.execute('device_del', { id: qdevId(disk) }).catch(ignoreBusyGuest)
      await sleep(250)
    }
    await dropBackend(qmp, disk)
  })
  await rm(join(ctx.records.folder(vmId), diskLink(disk.id)), { force: true })
}

export async function resizeInGuest(ctx: QemuContext, vmId: string, diskId: string, sizeBytes: number) {
  await talk(ctx, vmId, (qmp) =>
    qmp.execute('block_resize', { 'node-name': `node-${deviceId(diskId)}`, size: sizeBytes }),
  )
}

/** Sends commands to the VM's QEMU. A command that it refuses is `unavailable`. */
export async function talk<T>(
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

/** Sets the limits of the disks of a VM that has not run yet. */
export async function limitDisks(qmp: QmpSession, { osDiskMbps, disks }: VmSpec): Promise<void> {
  await limitDisk(qmp, 'os-device', osDiskMbps)
  for (const disk of disks) await limitDisk(qmp, qdevId(disk), disk.mbps)
}

async function limitDisk(qmp: QmpSession, device: string, mbps: number | null | undefined): Promise<void> {
  if (!mbps) return
  const bytesPerSecond = Math.round(mbps * 1e6)
  await qmp.execute('block_set_io_throttle', {
    // The PCI device has no backend itself, but the virtio device in it has.
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

/** Removes the backend of the device, which may be left from a server that died while plugging. */
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

/** The guest is still plugging in the disk, or already releasing it. */
function ignoreBusyGuest(error: unknown): void {
  if (!(error instanceof QmpError) || !/process of unplug|guest is busy|not found/.test(error.message))
    throw error
}

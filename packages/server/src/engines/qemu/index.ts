import { mkdir } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { packageRoot } from '../../package-root.ts'
import type { Engine } from '../engine.ts'
import { hostArchitecture } from './architecture.ts'
import { CaptureFiles } from './captures/capture-files.ts'
import type { QemuContext, QemuEngineOptions } from './context.ts'
import { DiskFiles } from './disks/disk-files.ts'
import { QemuEngine } from './engine.ts'
import { Fences } from './fences.ts'
import { readJson, writeJson } from './files.ts'
import { ForwarderClient } from './forwarder/client.ts'
import { HostGpus } from './gpu/gpus.ts'
import { Locks } from './lock.ts'
import { ensureMiniGuest } from './mini-guest/index.ts'
import { imagesDir, StatePaths } from './paths.ts'
import { chooseAccelerator, requireQemu, translationCacheMib } from './process/accelerator.ts'
import { findFirmware } from './process/firmware.ts'
import { deviceGroup, Isolation } from './process/isolation.ts'
import { VmRecords } from './vm-records.ts'

export type { QemuEngineOptions } from './context.ts'
export { buildGpuImage, type GpuImage } from './gpu-image/index.ts'
export { importImage } from './images/images.ts'
export { buildMiniGuest, ensureMiniGuest, miniGuestBytes } from './mini-guest/index.ts'

/** Throws if this machine cannot run VMs; the error says what to install. */
export async function createQemuEngine(
  given: QemuEngineOptions,
): Promise<Engine & { close(): Promise<void> }> {
  const arch = hostArchitecture()
  const options: Required<QemuEngineOptions> = {
    forwarderProgram: join(packageRoot(), 'dist/qemu-forwarder.js'),
    qemuProgram: arch.qemuProgram,
    sysfsRoot: '/sys',
    shutdownLimitMs: 90_000,
    qmpTimeoutMs: 10_000,
    progress: (message) => given.log.info({}, message),
    ...given,
  }
  const qemuVersion = await requireQemu(arch, options.qemuProgram)
  const paths = new StatePaths(options.dataDir, options.location)
  for (const folder of [paths.root, paths.vms, paths.disks, paths.captures, paths.fences])
    await mkdir(folder, { recursive: true, mode: 0o700 })

  const locks = new Locks(paths.root)
  let verdict = await locks.with('probe', AbortSignal.timeout(900_000), async () => {
    const guest = await ensureMiniGuest(options.dataDir, options.progress).catch((error: Error) => {
      options.log.warn({ err: error }, 'the mini guest is not available')
      return null
    })
    const guestFolder = guest && join(imagesDir(options.dataDir), guest.folder)
    return chooseAccelerator(paths.root, arch, options.qemuProgram, guestFolder)
  })
  const kvm = await deviceGroup('/dev/kvm')
  const isolation = await Isolation.find(options.location, typeof kvm === 'number' ? [kvm] : [])
  if (verdict.accelerator === 'kvm' && kvm === null && isolation.hasOwnUsers)
    verdict = {
      accelerator: 'tcg',
      reason: 'only root has access to /dev/kvm, and VMs run as other users',
    }
  options.log.info({ ...verdict, qemuVersion }, 'accelerator chosen')
  if (isolation.notIsolated.length > 0)
    options.log.warn({ notIsolated: isolation.notIsolated }, 'VMs are not fully isolated from this machine')

  const fences = new Fences(paths)
  await fences.deleteExpired()
  const ctx: QemuContext = {
    options,
    hostName: await persistentHostName(paths, options.location),
    arch,
    qemuVersion,
    verdict,
    translationCacheMib: await translationCacheMib(),
    firmware: await findFirmware(arch),
    isolation,
    paths,
    locks,
    fences,
    records: new VmRecords(paths),
    disks: new DiskFiles(paths),
    captures: new CaptureFiles(paths),
    gpus: new HostGpus(options.gpus, options.sysfsRoot),
    forwarder: new ForwarderClient(paths, options.forwarderProgram, locks),
  }
  return new QemuEngine(ctx)
}

/**
 * The name is stored at the first start, because VMs are placed by host name and the machine may be renamed.
 */
async function persistentHostName(paths: StatePaths, location: string): Promise<string> {
  const known = await readJson<{ name: string }>(paths.host)
  if (known) return known.name
  const name = `${location}-${hostname().split('.')[0]}`
  await writeJson(paths.host, { name })
  return name
}

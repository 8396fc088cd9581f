import { randomBytes } from 'node:crypto'
import { copyFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { EngineError, type VmSpec } from '../engine.ts'
import type { QemuContext } from './context.ts'
import { limitDisks, offerDisk } from './disks/attachments.ts'
import { createImage } from './disks/disk-files.ts'
import { isMissing } from './files.ts'
import { bootOf, type ImageSource, openImage, osBaseOf } from './images/images.ts'
import { syncForwards } from './network.ts'
import { type Observation, observe } from './observe.ts'
import { vmSocket } from './paths.ts'
import { type Machine, machineArguments } from './process/machine.ts'
import { awaitExitCode, endProcess, type ProcessIdentity, startQemu } from './process/process.ts'
import { withQmp } from './process/qmp.ts'
import { serialEnd } from './process/serial-log.ts'
import type { Run, VmRecord } from './vm-records.ts'

const minMemoryMib = 256
/**
 * Memory in addition to the guest's: for QEMU itself, its disk caches and the virtiofsd processes of shared
 * volumes.
 */
const overheadMemoryMib = 768
/** Processes and threads in addition to one per core; disks use up to 64 of them. */
const overheadProcesses = 512

/** Callers of the functions in this file hold the VM's lock. */

export async function powerOn(
  ctx: QemuContext,
  id: string,
  seen: Observation,
  signal: AbortSignal,
): Promise<void> {
  const current = seen.run && !seen.process ? await awaitSpawn(ctx, id, seen) : seen
  if (current.run && current.process) {
    if (!current.run.process) await finishStart(ctx, id)
    await syncForwards(ctx, id, current.record, { ...current.run, process: current.process })
    return
  }
  await ctx.records.clearRun(id)
  await requireFreeGpus(ctx, id, current.record.spec)
  await start(ctx, id, current.record, signal)
}

/** Marks the run as stopping, and asks the guest to shut down. */
export async function requestShutdown(ctx: QemuContext, id: string, seen: Observation): Promise<void> {
  if (!seen.run) return
  if (!seen.process) return powerOff(ctx, id, seen)
  await ctx.records.mark(id, 'stop', seen.run)
  await pressPowerButton(ctx, id)
}

/** Some architectures have no ACPI without firmware. On these, the power key of the keyboard is pressed too. */
export async function pressPowerButton(ctx: QemuContext, id: string): Promise<void> {
  await withQmp(vmSocket(ctx.records.folder(id), 'qmp'), ctx.options.qmpTimeoutMs, async (qmp) => {
    await qmp.execute('system_powerdown')
    if (!ctx.arch.hasPowerButtonWithoutFirmware)
      await qmp.execute('send-key', { keys: [{ type: 'qcode', data: 'power' }] })
  })
}

export async function powerOff(ctx: QemuContext, id: string, seen: Observation): Promise<void> {
  if (!seen.run) return
  const current = seen.process ? seen : await awaitSpawn(ctx, id, seen)
  if (current.process) {
    await ctx.records.mark(id, 'off', seen.run)
    await endProcess(current.process)
    await awaitExitCode(ctx.records.folder(id), seen.run.label)
  }
  await ctx.forwarder.remove(id)
  await ctx.records.clearRun(id)
  await ctx.isolation.release(id)
}

export async function reset(
  ctx: QemuContext,
  id: string,
  seen: Observation,
  generation: number,
  signal: AbortSignal,
): Promise<void> {
  if (!seen.run) throw new EngineError('rejected', `${id} is off`)
  if (seen.run.resetGeneration === generation) return
  if (!seen.process) {
    await powerOn(ctx, id, seen, signal)
    const started = await ctx.records.readRun(id)
    if (started) await ctx.records.writeRun(id, { ...started, resetGeneration: generation })
    return
  }
  await withQmp(vmSocket(ctx.records.folder(id), 'qmp'), ctx.options.qmpTimeoutMs, async (qmp) => {
    await qmp.execute('system_reset')
    await qmp.execute('cont')
  })
  const bootSerialOffset = await serialEnd(ctx.records.folder(id))
  const boot = { bootId: newId(), bootStartedAtMs: Date.now(), bootSerialOffset, resetGeneration: generation }
  await ctx.records.writeRun(id, { ...seen.run, process: seen.process, ...boot })
}

/**
 * If the run has no process yet, waits until QEMU appears or the start counts as failed. The server that
 * started QEMU may have died.
 */
async function awaitSpawn(ctx: QemuContext, id: string, seen: Observation): Promise<Observation> {
  let now = seen
  while (now.run && !now.process && now.power === 'booting') {
    await sleep(100)
    now = (await observe(ctx, id)) ?? now
  }
  return now
}

async function start(ctx: QemuContext, id: string, record: VmRecord, signal: AbortSignal): Promise<void> {
  const folder = ctx.records.folder(id)
  const machine = await describeMachine(ctx, id, record.spec)
  if (machine.hasScratch) await createImage(join(folder, 'scratch.qcow2'), record.spec.scratchGb, signal)
  const run: Run = {
    runId: machine.runId,
    bootId: newId(),
    bootStartedAtMs: Date.now(),
    bootSerialOffset: await serialEnd(folder),
    resetGeneration: null,
    label: machine.label,
    process: null,
    sshPort: 0,
    notes: [],
  }
  signal.throwIfAborted()
  await ctx.records.writeRun(id, run)
  try {
    await ctx.isolation.prepare(folder, ownFiles(machine))
    for (const disk of record.spec.disks) await offerDisk(ctx, id, disk)
    const process = await launch(ctx, id, machine)
    await finishStart(ctx, id)
    const started = { ...run, process }
    await ctx.records.writeRun(id, started)
    await syncForwards(ctx, id, record, started)
  } catch (error) {
    const seen = await observe(ctx, id)
    if (seen && !seen.process) {
      await ctx.records.clearRun(id)
      await ctx.isolation.release(id)
    }
    throw error
  }
}

/** The files in the VM's folder that QEMU's user must be able to open, except data disks and the serial log. */
function ownFiles({ hasScratch, boot }: Machine): string[] {
  const variables = boot.kind === 'disk' && boot.firmware ? [boot.firmware.variables] : []
  return ['os.qcow2', 'seed.iso', ...(hasScratch ? ['scratch.qcow2'] : []), ...variables]
}

async function launch(ctx: QemuContext, id: string, machine: Machine): Promise<ProcessIdentity> {
  const { spec, memoryMib, cpuCores, translationCacheMib, gpus } = machine
  const { qemuProgram } = ctx.options
  const folder = ctx.records.folder(id)
  const limits = {
    memoryMib: memoryMib + translationCacheMib + overheadMemoryMib,
    processes: overheadProcesses + cpuCores,
    cpuCores,
  }
  const files = await openImage(ctx, spec)
  try {
    for (const gpu of gpus) await ctx.isolation.give(folder, `/dev/vfio/${gpu.iommuGroup}`)
    const wrapped = await ctx.isolation.wrap(folder, id, qemuProgram, limits)
    const args = machineArguments(machine)
    return await startQemu(folder, {
      program: qemuProgram,
      wrapped,
      args,
      files,
      pinsMemory: gpus.length > 0,
    })
  } finally {
    for (const file of files) await file.close()
  }
}

/** The last step of a start. It can be repeated, in case the server that began the start has died. */
export async function finishStart(ctx: QemuContext, id: string): Promise<void> {
  const folder = ctx.records.folder(id)
  await ctx.isolation.seal(folder)
  const record = await ctx.records.read(id)
  await withQmp(vmSocket(folder, 'qmp'), ctx.options.qmpTimeoutMs, async (qmp) => {
    if (record) await limitDisks(qmp, record.spec)
    await qmp.execute('cont')
  })
}

async function describeMachine(ctx: QemuContext, id: string, spec: VmSpec): Promise<Machine> {
  const { options } = ctx
  const source = spec.image.source as ImageSource
  const base = await osBaseOf(ctx, spec)
  const runId = newId()
  return {
    arch: ctx.arch,
    accelerator: ctx.verdict.accelerator,
    // A full distribution runs far more code than the mini guest.
    translationCacheMib: ctx.translationCacheMib * (bootOf(source) ? 1 : 4),
    spec,
    memoryMib: Math.max(minMemoryMib, Math.ceil(spec.memoryGb * 1024 * options.scale)),
    cpuCores: Math.max(1, Math.round(spec.cpuCores * options.scale)),
    runId,
    label: `slipway-${id}-${runId}`,
    boot: await describeBoot(ctx, id, source),
    osBaseFormat: base.format,
    gpus: await ctx.gpus.passthrough(spec.gpus.map((gpu) => gpu.pciAddress)),
    hasScratch: spec.scratchGb > 0,
  }
}

async function describeBoot(ctx: QemuContext, id: string, source: ImageSource): Promise<Machine['boot']> {
  if (bootOf(source)) return { kind: 'kernel' }
  if (!ctx.firmware) {
    if (ctx.arch.name === 'aarch64')
      throw new EngineError(
        'rejected',
        'cloud images on aarch64 need UEFI; install it with apt-get install qemu-efi-aarch64',
      )
    return { kind: 'disk', firmware: null }
  }
  const variables = join(ctx.records.folder(id), 'uefi-variables.fd')
  await copyFile(ctx.firmware.variables, variables, 1).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST')
      throw isMissing(error)
        ? new EngineError('missing', 'the UEFI firmware of this host was removed')
        : error
  })
  return { kind: 'disk', firmware: { code: ctx.firmware.code, variables: 'uefi-variables.fd' } }
}

/** The database already guarantees that the GPUs are free; this check protects against wrong data. */
async function requireFreeGpus(ctx: QemuContext, id: string, spec: VmSpec): Promise<void> {
  const wanted = new Set(spec.gpus.map((gpu) => gpu.pciAddress))
  if (wanted.size === 0) return
  for (const other of await ctx.records.ids()) {
    if (other === id) continue
    const run = await ctx.records.readRun(other)
    const held = run
      ? (await ctx.records.read(other))?.spec.gpus.find((gpu) => wanted.has(gpu.pciAddress))
      : null
    if (held && (await observe(ctx, other))?.power !== 'off')
      throw new EngineError('unavailable', `GPU ${held.pciAddress} is held by VM ${other}`)
  }
}

function newId(): string {
  return randomBytes(8).toString('hex')
}

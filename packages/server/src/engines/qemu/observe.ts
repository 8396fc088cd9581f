import { join } from 'node:path'
import type { VmStatus } from '../engine.ts'
import { redactedTail } from './command.ts'
import type { QemuContext } from './context.ts'
import { pathExists, readText } from './files.ts'
import { awaitExitCode, exitCode, identify, isAlive, type ProcessIdentity } from './process/process.ts'
import { lastSerialLines } from './process/serial-log.ts'
import type { Run, VmRecord } from './vm-records.ts'

/** A QEMU process that was just spawned has no pid file yet, and the server that spawned it may have died. */
const spawnGraceMs = 10_000

export interface Observation {
  record: VmRecord
  run: Run | null
  /** The running QEMU process. */
  process: ProcessIdentity | null
  power: VmStatus['power']
  detail: string
}

/**
 * Reads the VM's state from its files and the process list, so that every server process sees the same state.
 * Returns null if there is no such VM.
 */
export async function observe(ctx: QemuContext, id: string): Promise<Observation | null> {
  const record = await ctx.records.read(id)
  if (!record) return null
  const run = await ctx.records.readRun(id)
  const alive = run && (await livingProcess(ctx, id, run))
  // Without its OS disk, the VM is lost, unless a QEMU process still has the disk open.
  if (!alive && !(await pathExists(ctx.records.osDisk(id)))) return null
  if (!run) return { record, run, process: null, power: 'off', detail: '' }
  if (!alive) {
    const isRecent = run.process === null && Date.now() - run.bootStartedAtMs < spawnGraceMs
    if (isRecent && (await exitCode(ctx.records.folder(id))) === null)
      return { record, run, process: null, power: 'booting', detail: '' }
    const end = await describeEnd(ctx, id, run)
    // The exit code is missing only because another process has deleted the run in the meantime, so observe
    // again.
    if (end.power === 'crashed' && (await ctx.records.readRun(id))?.runId !== run.runId)
      return observe(ctx, id)
    return { record, run, process: null, ...end }
  }
  const seen = { record, run, process: alive }
  if (await ctx.records.isMarked(id, 'stop', run)) return { ...seen, power: 'stopping', detail: '' }
  if (await ctx.records.isMarked(id, 'answered', run))
    return { ...seen, power: 'running', detail: run.notes.join('; ') }
  const waitedMs = Date.now() - run.bootStartedAtMs
  if (waitedMs < ctx.options.bootTimeoutS * 1000) return { ...seen, power: 'booting', detail: '' }
  const serial = await lastSerialLines(ctx.records.folder(id))
  const advice =
    ctx.verdict.accelerator === 'tcg'
      ? ' (emulated, without KVM: a full distribution may need a longer boot_timeout_s)'
      : ''
  const problem = (await ctx.records.isMarked(id, 'stranger', run))
    ? `SSH did not respond with the host key of this VM within ${ctx.options.bootTimeoutS} s; it responded with a different key`
    : `SSH did not respond within ${ctx.options.bootTimeoutS} s`
  const detail = `${problem}${advice}; last lines of the serial console:\n${serial}`
  return { ...seen, power: 'crashed', detail }
}

async function livingProcess(ctx: QemuContext, id: string, run: Run): Promise<ProcessIdentity | null> {
  if (run.process) return (await isAlive(run.process)) ? run.process : null
  return identify(ctx.records.folder(id), run.label)
}

/**
 * Returns `off` if the guest powered itself off or the engine ended QEMU, otherwise `crashed`. When a guest
 * powers itself off, QEMU exits with code 0.
 */
async function describeEnd(
  ctx: QemuContext,
  id: string,
  run: Run,
): Promise<{ power: 'off' | 'crashed'; detail: string }> {
  const folder = ctx.records.folder(id)
  const code = await awaitExitCode(folder, run.label)
  if (code === 0 || (await ctx.records.isMarked(id, 'off', run))) return { power: 'off', detail: '' }
  const log = redactedTail((await readText(join(folder, 'qemu.log'))) ?? '')
  const how = code === null ? 'QEMU exited with an unknown exit code' : `QEMU exited with code ${code}`
  const serial = await lastSerialLines(folder)
  return { power: 'crashed', detail: [how, log, serial].filter(Boolean).join('\n') }
}

export function toStatus(id: string, generation: number, observed: Observation): VmStatus {
  const { power, detail, run, record } = observed
  const { publicAddress } = record.spec.network
  const isReachable = run !== null && run.sshPort !== 0 && publicAddress !== '' && power !== 'off'
  const port = run?.sshPort === 22 ? '' : `:${run?.sshPort}`
  return {
    id,
    generation,
    power,
    sshDestination: isReachable ? `root@${publicAddress}${port}` : '',
    publicAddress,
    ...(detail ? { detail } : {}),
    firewallGeneration: record.firewallGeneration,
    diskIds: record.spec.disks.map((disk) => disk.id),
  }
}

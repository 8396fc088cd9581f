import { setTimeout as sleep } from 'node:timers/promises'
import type { VmSpec } from '../engine.ts'
import { isThawOverdue, thawIfOverdue } from './captures/live.ts'
import type { QemuContext } from './context.ts'
import { writeAtomically } from './files.ts'
import type { ForwarderStatus } from './forwarder/protocol.ts'
import type { SshProbeResult } from './forwarder/ssh-probe.ts'
import { bootOf, type ImageSource } from './images/images.ts'
import { seedImage } from './images/seed.ts'
import { miniGuestUp } from './mini-guest/files.ts'
import { syncForwards } from './network.ts'
import { type Observation, observe } from './observe.ts'
import { finishStart, powerOff, pressPowerButton } from './power.ts'
import { limitSerial, readSerial } from './process/serial-log.ts'
import type { Run } from './vm-records.ts'

const roundMs = 1_000
/**
 * A connection that is opened before the guest's network is up keeps hanging after the network comes up. So
 * early attempts are short.
 */
const minProbeMs = 400
const probeShareOfWait = 1 / 10
/**
 * When the guest's SSH server is up, attempts are long: on a busy machine, the server may be slow, and
 * abandoned connections would slow it down further.
 */
const patientProbeMs = 6_000
const buttonRepeatMs = 5_000
const pollMs = 100

/**
 * Watches the VMs of this machine: detects guests that have booted, stopped or crashed, restores forwarding,
 * and powers off VMs that do not shut down. Several server processes may do this at the same time, because
 * every action can be repeated.
 */
export class Monitor {
  readonly #ctx: QemuContext
  readonly #onChange: (vmId: string) => void
  readonly #lastPower = new Map<string, string>()
  readonly #bootsWatched = new Set<string>()
  readonly #thawing = new Set<string>()
  readonly #buttonPressedAtMs = new Map<string, number>()
  readonly #stop = new AbortController()
  #round: Promise<void> = Promise.resolve()
  #timer: NodeJS.Timeout | null = null

  constructor(ctx: QemuContext, onChange: (vmId: string) => void) {
    this.#ctx = ctx
    this.#onChange = onChange
  }

  start(): void {
    this.#timer = setTimeout(() => {
      this.#round = this.#checkAll().finally(() => {
        if (!this.#stop.signal.aborted) this.start()
      })
    }, roundMs)
  }

  async close(): Promise<void> {
    this.#stop.abort()
    if (this.#timer) clearTimeout(this.#timer)
    await this.#round
  }

  /** Returns immediately. The guest's first SSH response is recorded and reported later. */
  watchBoot(id: string): void {
    if (this.#bootsWatched.has(id) || this.#stop.signal.aborted) return
    this.#bootsWatched.add(id)
    void this.#followBoot(id)
      .catch((error) => this.#ctx.options.log.warn({ vmId: id, err: error }, 'failed to watch a VM boot'))
      .finally(() => this.#bootsWatched.delete(id))
  }

  /** The interval grows with the number of guests that are booting, because each boot then takes longer. */
  pollIntervalMs(): number {
    return pollMs * Math.max(1, this.#bootsWatched.size)
  }

  async #followBoot(id: string): Promise<void> {
    const { records } = this.#ctx
    let patientBootId = ''
    while (!this.#stop.signal.aborted) {
      const run = await records.readRun(id)
      if (!run || (await records.isMarked(id, 'answered', run))) return
      const spec = (await records.read(id))?.spec
      const announcement = await this.#announcement(id, run, spec)
      const isPatient = announcement === 'printed' || patientBootId === run.bootId
      const hostKey = spec?.sshHostKey?.publicKey ?? ''
      const result = announcement === 'missing' ? 'silent' : await this.#probeSsh(id, run, isPatient, hostKey)
      if (result === 'greeted') {
        await records.mark(id, 'answered', run)
        this.#report(id, 'running')
        return
      }
      // This is not an error yet, because the guest may not have installed the VM's key yet.
      if (result === 'stranger') await records.mark(id, 'stranger', run)
      if (result === 'closed') patientBootId = run.bootId
      const seen = await observe(this.#ctx, id)
      if (!seen?.run || (!seen.process && seen.power !== 'booting')) return
      await sleep(this.pollIntervalMs())
    }
  }

  #probeSsh(id: string, run: Run, isPatient: boolean, hostKey: string): Promise<SshProbeResult> {
    const eagerMs = Math.max(minProbeMs, (Date.now() - run.bootStartedAtMs) * probeShareOfWait)
    return this.#ctx.forwarder.probeSsh(id, isPatient ? patientProbeMs : eagerMs, hostKey)
  }

  /**
   * Returns whether the guest has announced on its console that it is up. The mini guest prints such a line;
   * other images do not.
   */
  async #announcement(
    id: string,
    run: Run,
    spec: VmSpec | undefined,
  ): Promise<'missing' | 'printed' | 'not expected'> {
    if (!spec || !bootOf(spec.image.source as ImageSource)) return 'not expected'
    const { content } = await readSerial(this.#ctx.records.folder(id), run.bootSerialOffset)
    return content.includes(miniGuestUp) ? 'printed' : 'missing'
  }

  async #checkAll(): Promise<void> {
    let forwarder: Promise<ForwarderStatus> | undefined
    for (const id of await this.#ctx.records.ids()) {
      try {
        await this.#check(id, async () => {
          forwarder ??= this.#ctx.forwarder.status()
          return (await forwarder).vms[id] !== undefined
        })
      } catch (error) {
        if (this.#stop.signal.aborted) return
        this.#ctx.options.log.warn({ vmId: id, err: error }, 'failed to check a VM')
      }
    }
  }

  async #check(id: string, isForwarded: () => Promise<boolean>): Promise<void> {
    const seen = await observe(this.#ctx, id)
    if (!seen || this.#stop.signal.aborted) return
    this.#report(id, seen.power)
    if (!seen.run) return
    if (seen.process && !(await this.#ctx.records.isMarked(id, 'answered', seen.run))) this.watchBoot(id)
    if (seen.process && !(await isForwarded())) await this.#restoreForwards(id)
    if (seen.power === 'running' && seen.record.spec.sshHostKey?.privateKey) await this.#forgetHostKey(id)
    if (seen.power === 'stopping') await this.#enforceShutdown(id, seen)
    if (seen.process) this.#thaw(id)
    if (!seen.process && seen.power !== 'booting') await this.#cleanUp(id)
    await limitSerial(this.#ctx.records.folder(id))
  }

  /** Adds a VM to a forwarder that was restarted. */
  async #restoreForwards(id: string): Promise<void> {
    await this.#withLock(id, async (seen) => {
      if (!seen.run || !seen.process) return
      if (!seen.run.process) await finishStart(this.#ctx, id)
      await syncForwards(this.#ctx, id, seen.record, { ...seen.run, process: seen.process })
    })
  }

  /**
   * Deletes the host key's private part, which only the guest needs. QEMU keeps the old seed file open until
   * it exits.
   */
  async #forgetHostKey(id: string): Promise<void> {
    const { records, options } = this.#ctx
    await this.#withLock(id, async ({ record }) => {
      const { sshHostKey } = record.spec
      const spec = { ...record.spec, sshHostKey: sshHostKey && { ...sshHostKey, privateKey: '' } }
      await writeAtomically(records.seed(id), seedImage(spec, options.egress))
      await records.write(id, { ...record, spec })
    })
  }

  /** Presses the power button again every few seconds, and powers the VM off after the time limit. */
  async #enforceShutdown(id: string, seen: Observation): Promise<void> {
    const requestedAtMs = await this.#ctx.records.markedAtMs(id, 'stop', seen.run!)
    if (requestedAtMs === null) return
    const isOverdue = Date.now() - requestedAtMs > this.#ctx.options.shutdownLimitMs
    const pressedAtMs = this.#buttonPressedAtMs.get(id) ?? requestedAtMs
    if (!isOverdue && Date.now() - pressedAtMs < buttonRepeatMs) return
    this.#buttonPressedAtMs.set(id, Date.now())
    await this.#withLock(id, async (now) => {
      if (now.power !== 'stopping') return
      if (isOverdue) await powerOff(this.#ctx, id, now)
      else await pressPowerButton(this.#ctx, id)
    })
  }

  /** Returns immediately, because a guest's agent can take seconds to respond and other VMs must not wait. */
  #thaw(id: string): void {
    if (this.#thawing.has(id)) return
    this.#thawing.add(id)
    const thaw = async () => {
      if (await isThawOverdue(this.#ctx, id)) await this.#withLock(id, () => thawIfOverdue(this.#ctx, id))
    }
    void thaw()
      .catch((error) => {
        if (!this.#stop.signal.aborted)
          this.#ctx.options.log.warn({ vmId: id, err: error }, 'failed to thaw a VM')
      })
      .finally(() => this.#thawing.delete(id))
  }

  /** Closes the public ports of a VM that has stopped, and deletes the run record unless the VM crashed. */
  async #cleanUp(id: string): Promise<void> {
    await this.#withLock(id, async (now) => {
      if (now.process || now.power === 'booting') return
      await this.#ctx.forwarder.remove(id)
      if (now.power === 'off') await this.#ctx.records.clearRun(id)
      await this.#ctx.isolation.release(id)
    })
  }

  async #withLock(id: string, work: (seen: Observation) => Promise<void>): Promise<void> {
    await this.#ctx.locks.with(id, this.#stop.signal, async () => {
      const seen = await observe(this.#ctx, id)
      if (seen) await work(seen)
    })
  }

  #report(id: string, power: string): void {
    if (this.#lastPower.get(id) === power) return
    this.#lastPower.set(id, power)
    this.#onChange(id)
  }
}

import type { VmSpec } from '../engine.ts'
import type { QemuContext } from './context.ts'
import { writeAtomically } from './files.ts'
import type { Greeting } from './forwarder/greeting.ts'
import type { ForwarderStatus } from './forwarder/protocol.ts'
import type { ImageSource } from './images/images.ts'
import { seedImage } from './images/seed.ts'
import { miniGuestUp } from './mini-guest/files.ts'
import { syncForwards } from './network.ts'
import { type Observed, observe } from './observe.ts'
import { letRun, powerOff, pressPowerButton } from './power.ts'
import { limitSerial, readSerial } from './process/serial-log.ts'
import type { Run } from './vm-records.ts'

const roundMs = 1_000
/** Before the guest's network is up, a connection hangs and only a fresh one gets through: try often. */
const minGreetingMs = 400
const greetingShareOfWait = 1 / 10
/** After that its SSH server may be slow on a busy machine, and abandoned connections are a burden to it: be patient. */
const patientGreetingMs = 6_000
const buttonRepeatMs = 5_000
const pollMs = 100

/**
 * Looks after the VMs of this machine: sees guests come up, end and crash, brings the forwarder back, pulls the plug on
 * those that do not shut down. Several server processes may do this at once; all of it can be done twice.
 */
export class Monitor {
  readonly #ctx: QemuContext
  readonly #onChange: (vmId: string) => void
  readonly #lastPower = new Map<string, string>()
  readonly #bootsWatched = new Set<string>()
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
      this.#round = this.#goRound().finally(() => {
        if (!this.#stop.signal.aborted) this.start()
      })
    }, roundMs)
  }

  async close(): Promise<void> {
    this.#stop.abort()
    if (this.#timer) clearTimeout(this.#timer)
    await this.#round
  }

  /** Returns at once; the guest's first SSH greeting is written down and told. */
  watchBoot(id: string): void {
    if (this.#bootsWatched.has(id) || this.#stop.signal.aborted) return
    this.#bootsWatched.add(id)
    void this.#followBoot(id)
      .catch((error) => this.#ctx.options.log.warn({ vmId: id, err: error }, 'watching a boot failed'))
      .finally(() => this.#bootsWatched.delete(id))
  }

  /** The more guests boot at once, the longer each takes, and the less looking helps. */
  lookAgainMs(): number {
    return pollMs * Math.max(1, this.#bootsWatched.size)
  }

  async #followBoot(id: string): Promise<void> {
    const { records } = this.#ctx
    let patientBootId = ''
    while (!this.#stop.signal.aborted) {
      const run = await records.readRun(id)
      if (!run || (await records.hasAnswered(id, run))) return
      const spec = (await records.read(id))?.spec
      const announcement = await this.#announcement(id, run, spec)
      const isPatient = announcement === 'made' || patientBootId === run.bootId
      const hostKey = spec?.sshHostKey?.publicKey ?? ''
      const greeting =
        announcement === 'awaited' ? 'silent' : await this.#greeting(id, run, isPatient, hostKey)
      if (greeting === 'greeted') {
        await records.markAnswered(id, run)
        this.#report(id, 'running')
        return
      }
      // Its own key may not be in place yet.
      if (greeting === 'stranger') await records.markStranger(id, run)
      if (greeting === 'closed') patientBootId = run.bootId
      const seen = await observe(this.#ctx, id)
      if (!seen?.run || (!seen.process && seen.power !== 'booting')) return
      await new Promise((resolve) => setTimeout(resolve, this.lookAgainMs()))
    }
  }

  #greeting(id: string, run: Run, isPatient: boolean, hostKey: string): Promise<Greeting> {
    const eagerMs = Math.max(minGreetingMs, (Date.now() - run.bootStartedAtMs) * greetingShareOfWait)
    return this.#ctx.forwarder.greeting(id, isPatient ? patientGreetingMs : eagerMs, hostKey)
  }

  /** The mini guest says on its console when it is up; of others we know nothing. */
  async #announcement(
    id: string,
    run: Run,
    spec: VmSpec | undefined,
  ): Promise<'awaited' | 'made' | 'unknown'> {
    if ((spec?.image.source as ImageSource | undefined)?.kind !== 'mini') return 'unknown'
    const { content } = await readSerial(this.#ctx.records.folder(id), run.bootSerialOffset)
    return content.includes(miniGuestUp) ? 'made' : 'awaited'
  }

  async #goRound(): Promise<void> {
    let forwarder: Promise<ForwarderStatus> | undefined
    for (const id of await this.#ctx.records.ids()) {
      try {
        await this.#lookAfter(id, async () => {
          forwarder ??= this.#ctx.forwarder.status()
          return (await forwarder).vms[id] !== undefined
        })
      } catch (error) {
        if (this.#stop.signal.aborted) return
        this.#ctx.options.log.warn({ vmId: id, err: error }, 'looking after a VM failed')
      }
    }
  }

  async #lookAfter(id: string, isForwarded: () => Promise<boolean>): Promise<void> {
    const seen = await observe(this.#ctx, id)
    if (!seen || this.#stop.signal.aborted) return
    this.#report(id, seen.power)
    if (!seen.run) return
    if (seen.process && !(await this.#ctx.records.hasAnswered(id, seen.run))) this.watchBoot(id)
    if (seen.process && !(await isForwarded())) await this.#restoreForwards(id)
    if (seen.power === 'running' && seen.record.spec.sshHostKey?.privateKey) await this.#forgetHostKey(id)
    if (seen.power === 'stopping') await this.#hurry(id, seen)
    if (!seen.process && seen.power !== 'booting') await this.#tidyUp(id)
    await limitSerial(this.#ctx.records.folder(id))
  }

  /** A forwarder that was started anew knows nothing of the VMs yet. */
  async #restoreForwards(id: string): Promise<void> {
    await this.#locked(id, async (seen) => {
      if (!seen.run || !seen.process) return
      if (!seen.run.process) await letRun(this.#ctx, id)
      await syncForwards(this.#ctx, id, seen.record, { ...seen.run, process: seen.process })
    })
  }

  /** The guest has its private key, and nobody else needs it. What QEMU holds open goes when it ends. */
  async #forgetHostKey(id: string): Promise<void> {
    const { records, options } = this.#ctx
    await this.#locked(id, async ({ record }) => {
      const { sshHostKey } = record.spec
      const spec = { ...record.spec, sshHostKey: sshHostKey && { ...sshHostKey, privateKey: '' } }
      await writeAtomically(records.seed(id), seedImage(spec, options.egress))
      await records.write(id, { ...record, spec })
    })
  }

  async #hurry(id: string, seen: Observed): Promise<void> {
    const askedAtMs = await this.#ctx.records.stopRequestedAtMs(id, seen.run!)
    if (askedAtMs === null) return
    if (Date.now() - askedAtMs > this.#ctx.options.shutdownLimitMs) {
      await this.#locked(id, async (now) => {
        if (now.power === 'stopping') await powerOff(this.#ctx, id, now)
      })
      return
    }
    const pressedAtMs = this.#buttonPressedAtMs.get(id) ?? askedAtMs
    if (Date.now() - pressedAtMs < buttonRepeatMs) return
    this.#buttonPressedAtMs.set(id, Date.now())
    await this.#locked(id, async (now) => {
      if (now.power === 'stopping') await pressPowerButton(this.#ctx, id)
    })
  }

  /** Closes the public ports of a VM that is no more, and puts the papers of an orderly end away. */
  async #tidyUp(id: string): Promise<void> {
    await this.#locked(id, async (now) => {
      if (now.process || now.power === 'booting') return
      await this.#ctx.forwarder.remove(id)
      if (now.power === 'off') await this.#ctx.records.clearRun(id)
      await this.#ctx.isolation.release(id)
    })
  }

  async #locked(id: string, work: (seen: Observed) => Promise<void>): Promise<void> {
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

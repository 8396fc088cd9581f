import type { Queryable } from '../../postgres/database.ts'
import { simulated } from '../../store/simulated/objects.ts'
import {
  type Call,
  type CaptureRef,
  type CaptureSpec,
  type CaptureStatus,
  EngineError,
  noSuchDisk,
  type VmRef,
} from '../engine.ts'

/** A simulated copy is this many times smaller than its disk. */
const sizeReduction = 8

type Consistency = NonNullable<CaptureStatus['result']>['consistency']

/** Simulated copies of disks, which exist only as rows and are complete immediately. */
export class SimulatedCopies {
  readonly #db: Queryable
  readonly #location: string

  constructor(db: Queryable, location: string) {
    this.#db = db
    this.#location = location
  }

  /**
   * Returns undefined for an older generation. `isOn` returns whether a VM is on, and throws if it does not
   * exist.
   */
  async put(
    capture: CaptureSpec,
    { generation }: Call,
    isOn: (vm: VmRef) => Promise<boolean>,
  ): Promise<{ id: string } | undefined> {
    const { id, sizeGib } = capture
    const known = await simulated.findCapture(this.#db, id)
    // The first call determines the copy's point in time, regardless of later changes to the source.
    const consistency = known?.consistency ?? (await this.#consistencyOf(capture, isOn))
    const storedBytes = Math.ceil((sizeGib * 1024 ** 3) / sizeReduction)
    const location = this.#location
    return simulated.putCapture(this.#db, { id, location, generation, storedBytes, consistency })
  }

  async #consistencyOf(
    { from, mustFreeze }: CaptureSpec,
    isOn: (vm: VmRef) => Promise<boolean>,
  ): Promise<Consistency> {
    if (from.kind === 'snapshot') await this.require(from.snapshot.id)
    if (from.kind === 'disk') await this.#requireDisk(from.disk.id)
    if (from.kind === 'snapshot' || !from.vm || !(await isOn(from.vm))) return 'off'
    if (await simulated.hasGuestAgent(this.#db)) return 'frozen'
    if (mustFreeze) throw new EngineError('unfrozen', 'simulated: the guest has no agent')
    return 'crash'
  }

  async #requireDisk(id: string): Promise<void> {
    const disk = await simulated.findDisk(this.#db, id)
    if (!disk || disk.is_removed) throw noSuchDisk(id)
  }

  /** Returns undefined for an older generation. */
  remove({ id }: CaptureRef, { generation }: Call): Promise<{ id: string } | undefined> {
    return simulated.removeCapture(this.#db, { id, location: this.#location, generation })
  }

  async find({ id }: CaptureRef): Promise<CaptureStatus | null> {
    const copy = await simulated.findCapture(this.#db, id)
    if (!copy || copy.is_removed) return null
    const { generation, stored_bytes: storedBytes, consistency } = copy
    return { id, generation, result: { storedBytes, consistency, source: { capture: id } } }
  }

  async require(id: string): Promise<void> {
    if (!(await this.find({ id, host: '' })))
      throw new EngineError('missing', `no such image or snapshot: ${id}`)
  }
}

/** The project and the organization of the operation that holds a slot. */
export interface SlotHolder {
  projectId: string
  organizationId: string
}

/**
 * Projects or organizations, the least recently served first, with the number of slots that they hold and the
 * number that they may hold.
 */
export interface Shares {
  ids: string[]
  held: number[]
  max: number[]
  /** How many slots a project or organization that is not listed may hold. */
  maxOfNew: number
}

/**
 * A project may hold this fraction of the slots that no other project holds. The rest stays free for projects
 * that need slots later. The same rule applies to organizations.
 */
const projectPart = 3 / 4
const organizationPart = 7 / 8

/**
 * Counts a worker's slots by project and organization, so that one tenant's long queue does not block other
 * tenants.
 */
export class SlotShares {
  readonly #slots: number
  readonly #projects: Counts
  readonly #organizations: Counts
  #held = 0

  constructor(slots: number) {
    this.#slots = slots
    this.#projects = new Counts(2 * slots)
    this.#organizations = new Counts(2 * slots)
  }

  get free(): number {
    return this.#slots - this.#held
  }

  take({ projectId, organizationId }: SlotHolder): void {
    this.#held++
    this.#projects.take(projectId)
    this.#organizations.take(organizationId)
  }

  release({ projectId, organizationId }: SlotHolder): void {
    this.#held--
    this.#projects.release(projectId)
    this.#organizations.release(organizationId)
  }

  canTake({ projectId, organizationId }: SlotHolder): boolean {
    return (
      this.free > 0 &&
      this.#left(this.#projects.of(projectId), projectPart) > 0 &&
      this.#left(this.#organizations.of(organizationId), organizationPart) > 0
    )
  }

  /**
   * How many slots one claim may take for several holders together, so that a slot stays free for a new
   * holder.
   */
  get maxForAll(): number {
    return Math.min(this.free, this.#max(0, organizationPart))
  }

  /**
   * How many slots any project could take now without a check of its share; 0 or less if a project has used
   * up its share.
   */
  get maxForAny(): number {
    let max = Math.min(this.free, this.#left(0, projectPart))
    for (const held of this.#projects.held) max = Math.min(max, this.#left(held, projectPart))
    for (const held of this.#organizations.held) max = Math.min(max, this.#left(held, organizationPart))
    return max
  }

  get projects(): Shares {
    return this.#shares(this.#projects, projectPart)
  }

  get organizations(): Shares {
    return this.#shares(this.#organizations, organizationPart)
  }

  #shares(counts: Counts, part: number): Shares {
    const held = [...counts.held]
    const max = held.map((count) => this.#max(count, part))
    return { ids: [...counts.ids], held, max, maxOfNew: this.#max(0, part) }
  }

  #left(held: number, part: number): number {
    return this.#max(held, part) - held
  }

  #max(held: number, part: number): number {
    return Math.max(1, Math.floor((this.free + held) * part))
  }
}

/**
 * Slots by holder, the least recently served first. Holders without slots are kept, up to a limit, to
 * remember that order.
 */
class Counts {
  readonly #maxKept: number
  readonly #counts = new Map<string, number>()

  constructor(maxKept: number) {
    this.#maxKept = maxKept
  }

  get ids(): Iterable<string> {
    return this.#counts.keys()
  }

  get held(): Iterable<number> {
    return this.#counts.values()
  }

  of(id: string): number {
    return this.#counts.get(id) ?? 0
  }

  take(id: string): void {
    const held = this.of(id)
    this.#counts.delete(id)
    this.#counts.set(id, held + 1)
    if (this.#counts.size > this.#maxKept) this.#forgetOne()
  }

  release(id: string): void {
    this.#counts.set(id, this.of(id) - 1)
  }

  #forgetOne(): void {
    for (const [id, held] of this.#counts)
      if (held === 0) {
        this.#counts.delete(id)
        return
      }
  }
}

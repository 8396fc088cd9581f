import { invalidField } from '../domain/failure.ts'
import { fullImageName } from '../domain/guest/images.ts'
import { oneOf } from '../domain/nearest.ts'
import type { Queryable, Tx } from '../postgres/database.ts'
import { findImage, type ImageRow, listImages } from '../store/fleet/images.ts'
import { findLocation, type LocationRow, listLocations } from '../store/fleet/locations.ts'
import { findSubnetFor, type VmSubnetRow } from '../store/network/networks.ts'

/** 400 that names the locations there are. */
export async function requireLocation(db: Queryable, name: string): Promise<LocationRow> {
  const location = await findLocation(db, name)
  if (location) return location
  const known = await listLocations(db)
  throw invalidField(
    'location',
    oneOf(
      name,
      known.map((each) => each.name),
    ),
  )
}

/** 400 that names the nearest image, or where this one can be used. */
export async function requireImage(db: Queryable, name: string, location: string): Promise<ImageRow> {
  const image = await findImage(db, name)
  if (!image) {
    const usable = (await listImages(db)).filter(({ locations }) => locations.includes(location))
    const names = usable.map((each) => each.name)
    throw invalidField('image', oneOf(fullImageName(name), names))
  }
  if (!image.locations.includes(location))
    throw invalidField('image', `cannot be used in ${location}, only in ${image.locations.join(', ')}`)
  return image
}

const rememberedMs = 1_000
const mostRemembered = 10_000

/**
 * What creations need of locations, images and subnets, from memory for at most a second. Only what was found is
 * remembered, so that no refusal comes from memory; and what was found is looked at again by the statement that makes
 * the VM.
 */
export class CatalogueMemory {
  readonly #known = new Map<string, { value: unknown; until: number }>()
  /** What a transaction is looking for: the requests of a batch share it. */
  readonly #finding = new WeakMap<Queryable, Map<string, Promise<unknown>>>()

  location(db: Queryable, name: string): Promise<LocationRow> {
    return this.#remembered(db, `location ${name}`, () => requireLocation(db, name))
  }

  /** The image, where the location offers it. */
  image(db: Queryable, name: string, location: string): Promise<ImageRow> {
    return this.#remembered(db, `image ${location} ${name}`, () => requireImage(db, name, location))
  }

  /** The given subnet, or the project's default one at the location. */
  subnet(
    db: Queryable,
    projectId: string,
    location: string,
    id: string | null,
  ): Promise<VmSubnetRow | undefined> {
    return this.#remembered(db, `subnet ${projectId} ${location} ${id}`, () =>
      findSubnetFor(db, projectId, location, id),
    )
  }

  /** Something of it turned out to be no longer so. */
  forget(): void {
    this.#known.clear()
  }

  async #remembered<T>(db: Queryable, key: string, find: () => Promise<T>): Promise<T> {
    const known = this.#known.get(key)
    if (known && known.until > performance.now()) return known.value as T
    const shared = (db as Partial<Tx>).batch ?? db
    const finding = this.#finding.get(shared) ?? new Map<string, Promise<unknown>>()
    this.#finding.set(shared, finding)
    if (!finding.has(key))
      finding.set(
        key,
        find().finally(() => finding.delete(key)),
      )
    const value = (await finding.get(key)) as T
    if (this.#known.size >= mostRemembered) this.#known.clear()
    if (value !== undefined) this.#known.set(key, { value, until: performance.now() + rememberedMs })
    return value
  }
}

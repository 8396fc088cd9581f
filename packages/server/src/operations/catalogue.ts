import { invalidField } from '../domain/failure.ts'
import { fullImageName } from '../domain/guest/images.ts'
import { oneOf } from '../domain/nearest.ts'
import type { Queryable, Tx } from '../postgres/database.ts'
import { findImage, type ImageRow, listImages } from '../store/fleet/images.ts'
import { findLocation, type LocationRow, listLocations } from '../store/fleet/locations.ts'
import { findSubnetFor, type VmSubnetRow } from '../store/network/networks.ts'

/** If no location has this name, throws a 400 that lists the locations. */
export async function requireLocation(db: Queryable, name: string): Promise<LocationRow> {
  const location = await findLocation(db, name)
  if (location) return location
  const names = (await listLocations(db)).map((each) => each.name)
  throw invalidField('location', oneOf(name, names))
}

/**
 * Throws a 400 if there is no image with this name, or if the location does not have it. The error suggests
 * similar images, or lists the locations that have the image.
 */
async function requireImage(db: Queryable, name: string, location: string): Promise<ImageRow> {
  const image = await findImage(db, name)
  if (!image) {
    const usable = (await listImages(db)).filter(({ locations }) => locations.includes(location))
    const names = usable.map((each) => each.name)
    throw invalidField('image', oneOf(fullImageName(name), names))
  }
  if (!image.locations.includes(location))
    throw invalidField('image', `is not available in ${location}, only in ${image.locations.join(', ')}`)
  return image
}

const maxAgeMs = 1_000
const maxEntries = 10_000

/**
 * Caches the locations, images and subnets that creations need, for at most a second. Only rows that were found are cached,
 * so that no request is refused because of the cache, and the statement that inserts the VM checks them again.
 */
export class CatalogueCache {
  readonly #cached = new Map<string, { value: unknown; until: number }>()
  /** Reads in progress, by transaction. The requests of a batch share them. */
  readonly #reading = new WeakMap<Queryable, Map<string, Promise<unknown>>>()

  location(db: Queryable, name: string): Promise<LocationRow> {
    return this.#readThrough(db, `location ${name}`, () => requireLocation(db, name))
  }

  image(db: Queryable, name: string, location: string): Promise<ImageRow> {
    return this.#readThrough(db, `image ${location} ${name}`, () => requireImage(db, name, location))
  }

  /** Returns the subnet with this id, or the project's default one at the location. */
  subnet(
    db: Queryable,
    projectId: string,
    location: string,
    id: string | null,
  ): Promise<VmSubnetRow | undefined> {
    return this.#readThrough(db, `subnet ${projectId} ${location} ${id}`, () =>
      findSubnetFor(db, projectId, location, id),
    )
  }

  /** Empties the cache after a VM could not be written, which an outdated entry may have caused. */
  forget(): void {
    this.#cached.clear()
  }

  async #readThrough<T>(db: Queryable, key: string, find: () => Promise<T>): Promise<T> {
    const cached = this.#cached.get(key)
    if (cached && cached.until > performance.now()) return cached.value as T
    const shared = (db as Partial<Tx>).batch ?? db
    const reading = this.#reading.get(shared) ?? new Map<string, Promise<unknown>>()
    this.#reading.set(shared, reading)
    if (!reading.has(key))
      reading.set(
        key,
        find().finally(() => reading.delete(key)),
      )
    const value = (await reading.get(key)) as T
    if (this.#cached.size >= maxEntries) this.#cached.clear()
    if (value !== undefined) this.#cached.set(key, { value, until: performance.now() + maxAgeMs })
    return value
  }
}

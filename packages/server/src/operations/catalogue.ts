import { invalidField } from '../domain/failure.ts'
import { fullImageName } from '../domain/guest/images.ts'
import { oneOf } from '../domain/nearest.ts'
import type { Queryable } from '../store/database.ts'
import { findImage, type ImageRow, listImages } from '../store/fleet/images.ts'
import { findLocation, type LocationRow, listLocations } from '../store/fleet/locations.ts'

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

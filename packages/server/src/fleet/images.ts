import { Failure, invalidField, notFound } from '../domain/failure.ts'
import type { Queryable, Tx } from '../store/database.ts'
import { emit, type Requester } from '../store/events/events.ts'
import {
  countImageUsers,
  type ImageRow,
  insertImage,
  removeImage,
  setImageLocations,
} from '../store/fleet/images.ts'
import { listLocations } from '../store/fleet/locations.ts'

export interface NewImage {
  name: string
  description?: string
  tags?: string[]
  locations: string[]
  source?: Record<string, unknown>
}

export async function createImage(tx: Tx, by: Requester, given: NewImage): Promise<ImageRow> {
  await requireLocations(tx, given.locations)
  const { description = '', tags = [], source = {} } = given
  const image = await insertImage(tx, { ...given, description, tags, source })
  if (!image) throw new Failure('already_exists', `There is an image ${given.name} already.`)
  await emitImage(tx, by, 'image.created', image)
  return image
}

export async function changeImageLocations(
  tx: Tx,
  by: Requester,
  id: string,
  locations: string[],
): Promise<ImageRow> {
  await requireLocations(tx, locations)
  const image = await setImageLocations(tx, id, locations)
  if (!image) throw notFound('image')
  await emitImage(tx, by, 'image.updated', image)
  return image
}

/** Only one that no VM was made from. */
export async function deleteImage(tx: Tx, by: Requester, id: string): Promise<void> {
  const users = await countImageUsers(tx, id)
  if (users > 0)
    throw new Failure(
      'conflict',
      `${users} VMs were made from this image: take its locations away to stop new ones.`,
    )
  const image = await removeImage(tx, id)
  if (!image) throw notFound('image')
  await emitImage(tx, by, 'image.deleted', image)
}

async function requireLocations(db: Queryable, names: string[]): Promise<void> {
  const known = (await listLocations(db)).map(({ name }) => name)
  names.forEach((name, i) => {
    if (!known.includes(name)) throw invalidField(`locations/${i}`, `there is no location ${name}`)
    if (names.indexOf(name) < i) throw invalidField(`locations/${i}`, `${name} is named twice`)
  })
}

const emitImage = (tx: Tx, by: Requester, type: string, image: ImageRow): Promise<void> =>
  emit(tx, {
    ...by,
    type,
    resourceType: 'image',
    resourceId: image.id,
    data: { name: image.name, locations: image.locations },
  })

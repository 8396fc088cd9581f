import type { EventType } from '@slipway/contract'
import { Failure, invalidField, notFound } from '../domain/failure.ts'
import type { Queryable, Tx } from '../postgres/database.ts'
import { emit, type Requester } from '../store/events/events.ts'
import {
  countImageUsers,
  findImageSource,
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
  const { description = '', tags = [] } = given
  const source = await registeredSource(tx, given)
  const image = await insertImage(tx, {
    ...{ ...given, description, tags },
    ...{ source: source ?? given.source ?? {}, isRegistered: source !== null },
  })
  if (!image) throw new Failure('already_exists', `An image named ${given.name} already exists.`)
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
  const real = await realLocation(tx, locations)
  if (real && !image.is_registered)
    throw invalidField(
      'locations',
      `must not contain ${real}: this image was not registered with the command \`slipway-server images\``,
    )
  await emitImage(tx, by, 'image.updated', image)
  return image
}

export async function deleteImage(tx: Tx, by: Requester, id: string): Promise<void> {
  const vmCount = await countImageUsers(tx, id)
  if (vmCount > 0)
    throw new Failure(
      'conflict',
      `The image cannot be deleted while VMs use it (VMs: ${vmCount}). Remove its locations to prevent new VMs from using it.`,
    )
  const image = await removeImage(tx, id)
  if (!image) throw notFound('image')
  await emitImage(tx, by, 'image.deleted', image)
}

/**
 * Finds the registered image (`slipway-server images`) that the fields of `source` identify, and returns its
 * full source, because locations with real VMs accept no other source. Returns null if all locations are
 * simulated.
 */
async function registeredSource(
  tx: Tx,
  { locations, source = {} }: NewImage,
): Promise<Record<string, unknown> | null> {
  if (!(await realLocation(tx, locations))) return null
  const registered = Object.keys(source).length > 0 && (await findImageSource(tx, source))
  if (!registered)
    throw invalidField(
      'source',
      'must identify an image that was registered with the command `slipway-server images`',
    )
  return registered
}

async function realLocation(tx: Tx, names: string[]): Promise<string | undefined> {
  const all = await listLocations(tx)
  return all.find(({ name, engine }) => engine !== 'simulated' && names.includes(name))?.name
}

async function requireLocations(db: Queryable, names: string[]): Promise<void> {
  const known = (await listLocations(db)).map(({ name }) => name)
  names.forEach((name, i) => {
    if (!known.includes(name)) throw invalidField(`locations/${i}`, `there is no location ${name}`)
    if (names.indexOf(name) < i) throw invalidField(`locations/${i}`, `${name} is listed twice`)
  })
}

const emitImage = (tx: Tx, by: Requester, type: EventType, image: ImageRow): Promise<void> =>
  emit(tx, {
    ...by,
    type,
    resourceType: 'image',
    resourceId: image.id,
    data: { name: image.name, locations: image.locations },
  })

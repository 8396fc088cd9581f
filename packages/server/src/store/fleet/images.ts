import { fullImageName } from '../../domain/guest/images.ts'
import { uuid } from '../../domain/ids.ts'
import type { Queryable, Tx } from '../../postgres/database.ts'
import { statement } from '../../postgres/statement.ts'

export interface ImageRow {
  id: string
  name: string
  description: string
  tags: string[]
  locations: string[]
  source: Record<string, unknown>
  /** True if an engine registered the source. */
  is_registered: boolean
  created_at: Date
}

export interface NewImage {
  name: string
  description: string
  tags: string[]
  locations: string[]
  source: Record<string, unknown>
  isRegistered: boolean
}

type ImageExtension = Pick<NewImage, 'locations' | 'tags' | 'source'>

export const listImages = statement<ImageRow>('image_list', 'SELECT * FROM images ORDER BY name').all

const findByName = statement<ImageRow, { name: string }>(
  'image_find_by_name',
  'SELECT * FROM images WHERE name = :name',
)

// Finds the full source, registered by an engine, that contains all fields of the given partial source.
const findSource = statement<{ source: Record<string, unknown> }, { given: Record<string, unknown> }>(
  'image_find_source',
  'SELECT source FROM images WHERE source @> :given AND is_registered ORDER BY created_at LIMIT 1',
)

// Inserts nothing if the name is taken.
const insert = statement<ImageRow, NewImage & { id: string }>(
  'image_insert',
  `INSERT INTO images (id, name, description, tags, locations, source, is_registered)
   VALUES (:id, :name, :description, :tags, :locations, :source, :isRegistered)
   ON CONFLICT (name) DO NOTHING RETURNING *`,
)

export const setImageLocations = statement<ImageRow, { id: string; locations: string[] }, Tx>(
  'image_set_locations',
  'UPDATE images SET locations = :locations WHERE id = :id RETURNING *',
).oneBy('id', 'locations')

// Adds locations and tags, and never removes any. Callers pass only new locations, so that a location that an
// operator removed is not added again. An empty source registers nothing.
const extend = statement<never, ImageExtension & { name: string }>(
  'image_extend',
  `UPDATE images SET source = source || :source, is_registered = is_registered OR :source <> '{}'::jsonb,
     locations = locations || ARRAY(SELECT l FROM unnest(:locations::text[]) l WHERE NOT (l = ANY(locations))),
     tags = tags || ARRAY(SELECT t FROM unnest(:tags::text[]) t WHERE NOT (t = ANY(tags)))
   WHERE name = :name`,
)

const usersOf = statement<{ vms: number }, { id: string }>(
  'image_users',
  `SELECT count(*) AS vms FROM vms v JOIN images i ON i.name = v.image AND v.custom_image_id IS NULL
   WHERE i.id = :id AND v.deleted_at IS NULL`,
)

export const removeImage = statement<ImageRow, { id: string }, Tx>(
  'image_remove',
  'DELETE FROM images WHERE id = :id RETURNING *',
).oneBy('id')

export const findImage = (db: Queryable, name: string): Promise<ImageRow | undefined> =>
  findByName.one(db, { name: fullImageName(name) })

export async function findImageSource(
  db: Queryable,
  given: Record<string, unknown>,
): Promise<Record<string, unknown> | undefined> {
  return (await findSource.one(db, { given }))?.source
}

/** Returns undefined if the name is taken. */
export const insertImage = (tx: Tx, image: NewImage): Promise<ImageRow | undefined> =>
  insert.one(tx, { ...image, id: uuid(), name: fullImageName(image.name) })

export const extendImage = (tx: Tx, name: string, { locations, tags, source }: ImageExtension) =>
  extend.run(tx, { name: fullImageName(name), locations, tags, source })

export async function countImageUsers(db: Queryable, id: string): Promise<number> {
  return (await usersOf.one(db, { id }))!.vms
}

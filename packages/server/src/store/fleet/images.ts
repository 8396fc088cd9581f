import { uuid } from '../../domain/ids.ts'
import { fullImageName } from '../../domain/images.ts'
import { type Queryable, statement, type Tx } from '../database.ts'

export interface ImageRow {
  id: string
  name: string
  description: string
  tags: string[]
  locations: string[]
  source: Record<string, unknown>
  created_at: Date
}

export interface NewImage {
  name: string
  description: string
  tags: string[]
  locations: string[]
  source: Record<string, unknown>
}

const list = statement<ImageRow>('image_list', 'SELECT * FROM images ORDER BY name')

const findByName = statement<ImageRow, [string]>('image_find_by_name', 'SELECT * FROM images WHERE name = $1')

// No row when the name is taken.
const insert = statement<ImageRow, [string, string, string, string[], string[], string]>(
  'image_insert',
  `INSERT INTO images (id, name, description, tags, locations, source) VALUES ($1, $2, $3, $4, $5, $6)
   ON CONFLICT (name) DO NOTHING RETURNING *`,
)

const setLocations = statement<ImageRow, [string, string[]]>(
  'image_set_locations',
  'UPDATE images SET locations = $2 WHERE id = $1 RETURNING *',
)

// Locations are only ever added, so that what an operator took away stays away.
const extend = statement<never, [string, string[], string]>(
  'image_extend',
  `UPDATE images SET source = source || $3,
     locations = locations || ARRAY(SELECT l FROM unnest($2::text[]) l WHERE NOT (l = ANY(locations)))
   WHERE name = $1`,
)

const usersOf = statement<{ vms: number }, [string]>(
  'image_users',
  `SELECT count(*) AS vms FROM vms v JOIN images i ON i.name = v.image WHERE i.id = $1 AND v.deleted_at IS NULL`,
)

const remove = statement<ImageRow, [string]>('image_remove', 'DELETE FROM images WHERE id = $1 RETURNING *')

export const listImages = (db: Queryable): Promise<ImageRow[]> => list.all(db)

export const findImage = (db: Queryable, name: string): Promise<ImageRow | undefined> =>
  findByName.one(db, fullImageName(name))

/** Nothing when the name is taken. */
export const insertImage = (tx: Tx, image: NewImage): Promise<ImageRow | undefined> =>
  insert.one(
    tx,
    uuid(),
    fullImageName(image.name),
    image.description,
    image.tags,
    image.locations,
    JSON.stringify(image.source),
  )

export const setImageLocations = (tx: Tx, id: string, locations: string[]): Promise<ImageRow | undefined> =>
  setLocations.one(tx, id, locations)

export async function extendImage(
  tx: Tx,
  name: string,
  locations: string[],
  source: Record<string, unknown>,
): Promise<void> {
  await extend.run(tx, fullImageName(name), locations, JSON.stringify(source))
}

export async function countImageUsers(db: Queryable, id: string): Promise<number> {
  return (await usersOf.one(db, id))!.vms
}

export const removeImage = (tx: Tx, id: string): Promise<ImageRow | undefined> => remove.one(tx, id)

import { statement, type Tx } from './database.ts'

/** Private addresses are unique in their network, public ones everywhere. */
export interface AddressPool {
  networkId: string | null
}

const freePrivate = statement<{ address: string }, [string, string[]]>(
  'address_private_candidate',
  `SELECT c AS address FROM unnest($2::text[]) c
   WHERE NOT EXISTS (SELECT FROM vms WHERE network_id = $1 AND private_address = c::inet) LIMIT 1`,
)

const searchPrivate = statement<{ address: string }, [string, string, number]>(
  'address_private_search',
  `SELECT host($2::inet + n) AS address FROM generate_series(0, $3::bigint - 1) n
   WHERE NOT EXISTS (SELECT FROM vms WHERE network_id = $1 AND private_address = $2::inet + n) ORDER BY random() LIMIT 1`,
)

const freePublic = statement<{ address: string }, [string[]]>(
  'address_public_candidate',
  `SELECT c AS address FROM unnest($1::text[]) c
   WHERE NOT EXISTS (SELECT FROM vms WHERE public_address = c::inet) LIMIT 1`,
)

const searchPublic = statement<{ address: string }, [string, number]>(
  'address_public_search',
  `SELECT host($1::inet + n) AS address FROM generate_series(0, $2::bigint - 1) n
   WHERE NOT EXISTS (SELECT FROM vms WHERE public_address = $1::inet + n) ORDER BY random() LIMIT 1`,
)

/** One of the candidates if any is free, else any of the `count` addresses from `first` on; null when all are taken. */
export async function findFreeAddress(
  tx: Tx,
  pool: AddressPool,
  candidates: string[],
  first: string,
  count: number,
): Promise<string | null> {
  const found =
    pool.networkId === null
      ? ((await freePublic.one(tx, candidates)) ?? (await searchPublic.one(tx, first, count)))
      : ((await freePrivate.one(tx, pool.networkId, candidates)) ??
        (await searchPrivate.one(tx, pool.networkId, first, count)))
  return found?.address ?? null
}

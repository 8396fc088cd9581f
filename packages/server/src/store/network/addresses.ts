import { statement, type Tx } from '../database.ts'

/** Where an address may come from: `candidates` first, else any of the `count` addresses from `first` on. */
export interface AddressRange {
  candidates: string[]
  first: string
  count: number
}

// Private addresses are unique in their network, public ones everywhere. Written so that candidates are looked up one by
// one in the index, until one is free.
const candidates = statement<
  { private_address: string | null; public_address: string | null },
  [string, string[], string[]]
>(
  'address_candidates',
  `SELECT (SELECT c FROM unnest($2::text[]) c
           WHERE (SELECT id FROM vms WHERE network_id = $1 AND private_address = c::inet LIMIT 1) IS NULL LIMIT 1) AS private_address,
          (SELECT c FROM unnest($3::text[]) c
           WHERE (SELECT id FROM vms WHERE public_address = c::inet LIMIT 1) IS NULL LIMIT 1) AS public_address`,
)

const searchPrivate = statement<{ address: string }, [string, string, number]>(
  'address_private_search',
  `SELECT host($2::inet + n) AS address FROM generate_series(0, $3::bigint - 1) n
   WHERE NOT EXISTS (SELECT FROM vms WHERE network_id = $1 AND private_address = $2::inet + n) ORDER BY random() LIMIT 1`,
)

const searchPublic = statement<{ address: string }, [string, number]>(
  'address_public_search',
  `SELECT host($1::inet + n) AS address FROM generate_series(0, $2::bigint - 1) n
   WHERE NOT EXISTS (SELECT FROM vms WHERE public_address = $1::inet + n) ORDER BY random() LIMIT 1`,
)

/** Free addresses of the two ranges; null where all are taken, or none is wanted. */
export async function findFreeAddresses(
  tx: Tx,
  networkId: string,
  inside: AddressRange,
  outside: AddressRange | null,
): Promise<{ privateAddress: string | null; publicAddress: string | null }> {
  const found = (await candidates.one(tx, networkId, inside.candidates, outside?.candidates ?? []))!
  const privateAddress =
    found.private_address ?? (await searchPrivate.one(tx, networkId, inside.first, inside.count))?.address
  const publicAddress =
    found.public_address ?? (outside && (await searchPublic.one(tx, outside.first, outside.count))?.address)
  return { privateAddress: privateAddress ?? null, publicAddress: publicAddress ?? null }
}

import type { Tx } from '../database.ts'
import { statement } from '../statement.ts'

/** Where an address may come from: `candidates` first, else any of the `count` addresses from `first` on. */
export interface AddressRange {
  candidates: string[]
  first: string
  count: number
}

// Private addresses are unique in their network, public ones everywhere. The statement is written so that candidates are
// looked up one by one in the index, until one is free.
const candidates = statement<
  { private_address: string | null; public_address: string | null },
  { networkId: string; privateCandidates: string[]; publicCandidates: string[] }
>(
  'address_candidates',
  `SELECT (SELECT c FROM unnest(:privateCandidates::text[]) c
           WHERE (SELECT id FROM vms WHERE network_id = :networkId AND private_address = c::inet LIMIT 1) IS NULL
           LIMIT 1) AS private_address,
          (SELECT c FROM unnest(:publicCandidates::text[]) c
           WHERE (SELECT id FROM vms WHERE public_address = c::inet LIMIT 1) IS NULL LIMIT 1) AS public_address`,
)

const searchPrivate = statement<{ address: string }, { networkId: string; first: string; count: number }>(
  'address_private_search',
  `SELECT host(:first::inet + n) AS address FROM generate_series(0, :count::bigint - 1) n
   WHERE NOT EXISTS (SELECT FROM vms WHERE network_id = :networkId AND private_address = :first::inet + n)
   ORDER BY random() LIMIT 1`,
)

const searchPublic = statement<{ address: string }, { first: string; count: number }>(
  'address_public_search',
  `SELECT host(:first::inet + n) AS address FROM generate_series(0, :count::bigint - 1) n
   WHERE NOT EXISTS (SELECT FROM vms WHERE public_address = :first::inet + n) ORDER BY random() LIMIT 1`,
)

/** Finds free addresses of the two ranges; null where all are taken, or none is wanted. */
export async function findFreeAddresses(
  tx: Tx,
  networkId: string,
  inside: AddressRange,
  outside: AddressRange | null,
): Promise<{ privateAddress: string | null; publicAddress: string | null }> {
  const found = (await candidates.one(tx, {
    networkId,
    privateCandidates: inside.candidates,
    publicCandidates: outside?.candidates ?? [],
  }))!
  const privateAddress =
    found.private_address ?? (await searchPrivate.one(tx, { ...inside, networkId }))?.address
  const publicAddress = found.public_address ?? (outside && (await searchPublic.one(tx, outside))?.address)
  return { privateAddress: privateAddress ?? null, publicAddress: publicAddress ?? null }
}

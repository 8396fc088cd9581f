import { randomInt } from 'node:crypto'
import type { Tx } from '../../postgres/database.ts'
import { perTransaction } from '../../postgres/gathered.ts'
import { statement } from '../../postgres/statement.ts'

/** The addresses to choose from: `candidates` first, otherwise any of the `count` addresses from `first` on. */
export interface AddressRange {
  candidates: string[]
  first: string
  count: number
}

/**
 * `offset` is where the search of a block starts. It is random, so that two concurrent searches rarely find
 * the same address.
 */
interface Search {
  first: string
  count: number
  offset: number
}

// Private addresses are unique within their network. Public addresses are unique everywhere, including those
// that are held. The form of the statement makes PostgreSQL look up candidates one by one in the index until
// enough are free.
const isPrivateFree = (networkId: string, address: string) =>
  `(SELECT id FROM vms WHERE network_id = ${networkId} AND private_address = ${address} LIMIT 1) IS NULL`
const isPublicFree = (address: string) =>
  `(SELECT used.address FROM public_addresses used WHERE used.address = ${address} LIMIT 1) IS NULL
           AND (SELECT held.address FROM held_addresses held WHERE held.address = ${address} LIMIT 1) IS NULL`

/**
 * The number of free candidates to read. It is more than one, because another VM of the batch may take one.
 */
const spares = 4

const candidates = statement<
  { ordinal: number; private_addresses: string[]; public_addresses: string[] },
  { wanted: string }
>(
  'address_candidates',
  `SELECT w.ordinal,
          ARRAY(SELECT c FROM unnest(w."privateCandidates") c WHERE ${isPrivateFree('w."networkId"', 'c::inet')}
                LIMIT ${spares}) AS private_addresses,
          ARRAY(SELECT c FROM unnest(w."publicCandidates") c WHERE ${isPublicFree('c::inet')}
                LIMIT ${spares}) AS public_addresses
   FROM json_to_recordset(:wanted::json) AS w (ordinal integer, "networkId" uuid, "privateCandidates" text[],
                                               "publicCandidates" text[])`,
)

// Searches exhaustively: reads blocks of 256 addresses in random order until one of them has a free address.
// Counting the index entries of a block shows whether it is full. In a pool that is 95% full, at least one in
// twenty blocks has a free address.
const search = (takenInBlock: string, isFree: (address: string) => string) => `
   SELECT host(free.address) AS address
   FROM (SELECT :first::inet + n AS first, least(n + 255, :count::bigint - 1) - n AS more
         FROM generate_series(0, :count::bigint - 1, 256) n ORDER BY random() OFFSET 0) block
   CROSS JOIN LATERAL (SELECT ${takenInBlock} AS taken OFFSET 0) used
   CROSS JOIN LATERAL (
     SELECT a.address FROM generate_series(0, block.more) n
     CROSS JOIN LATERAL (SELECT block.first + (n + :offset::bigint) % (block.more + 1) AS address) a
     WHERE used.taken <= block.more AND ${isFree('a.address')} LIMIT 1) free
   LIMIT 1`

const searchPrivate = statement<{ address: string }, { networkId: string } & Search>(
  'address_private_search',
  search(
    `(SELECT count(*) FROM vms
      WHERE network_id = :networkId AND private_address BETWEEN block.first AND block.first + block.more)`,
    (address) => isPrivateFree(':networkId', address),
  ),
)

const searchPublic = statement<{ address: string }, Search>(
  'address_public_search',
  search(
    `(SELECT count(*) FROM public_addresses WHERE address BETWEEN block.first AND block.first + block.more)
     + (SELECT count(*) FROM held_addresses WHERE address BETWEEN block.first AND block.first + block.more)`,
    isPublicFree,
  ),
)

/** The ranges of one VM: private addresses of its network, and public ones if it wants a public address. */
interface AddressRanges {
  networkId: string
  inside: AddressRange
  outside: AddressRange | null
}

interface FreeAddresses {
  privateAddress: string | null
  publicAddress: string | null
}

/** Addresses that are assigned to VMs of the transaction. */
const takenAddresses = perTransaction(() => new Set<string>())

/**
 * Finds different free addresses for each VM; null if no candidate is free or no address is wanted. With
 * `isExact`, a wanted address is null only if the whole range is taken.
 */
export async function findFreeAddresses(
  tx: Tx,
  wanted: AddressRanges[],
  isExact: boolean,
): Promise<FreeAddresses[]> {
  const rows = await candidates.all(tx, {
    wanted: JSON.stringify(
      wanted.map(({ networkId, inside, outside }, ordinal) => ({
        ordinal,
        networkId,
        privateCandidates: inside.candidates,
        publicCandidates: outside?.candidates ?? [],
      })),
    ),
  })
  const taken = takenAddresses(tx)
  const firstUntaken = (scope: string, addresses: string[]) => {
    const address = addresses.find((each) => !taken.has(`${scope} ${each}`)) ?? null
    taken.add(`${scope} ${address}`)
    return address
  }
  const found = rows
    .sort((a, b) => a.ordinal - b.ordinal)
    .map(({ ordinal, private_addresses, public_addresses }) => ({
      privateAddress: firstUntaken(wanted[ordinal]!.networkId, private_addresses),
      publicAddress: firstUntaken('public', public_addresses),
    }))
  return isExact
    ? Promise.all(found.map((each, ordinal) => searchMissing(tx, wanted[ordinal]!, each)))
    : found
}

/** Finds a free public address; null if all addresses of the range are taken. */
export async function findFreePublicAddress(tx: Tx, range: AddressRange): Promise<string | null> {
  const wanted = [{ ordinal: 0, networkId: null, privateCandidates: [], publicCandidates: range.candidates }]
  const row = await candidates.one(tx, { wanted: JSON.stringify(wanted) })
  return (
    row?.public_addresses[0] ??
    (await searchPublic.one(tx, { ...range, offset: randomInt(256) }))?.address ??
    null
  )
}

/** Searches the whole range for each address that no candidate provided. */
async function searchMissing(
  tx: Tx,
  { networkId, inside, outside }: AddressRanges,
  found: FreeAddresses,
): Promise<FreeAddresses> {
  const offset = randomInt(256)
  const privateAddress =
    found.privateAddress ?? (await searchPrivate.one(tx, { ...inside, networkId, offset }))?.address
  const publicAddress =
    found.publicAddress ?? (outside && (await searchPublic.one(tx, { ...outside, offset }))?.address)
  return { privateAddress: privateAddress ?? null, publicAddress: publicAddress ?? null }
}

// A firewall of the project may still allow the address if the firewall has been outdated since this time or earlier.
// Firewalls on a host that is down do not count, because they are updated before the host is up again.
const mayStillAllow = (projectId: string, heldAt: string) => `
  EXISTS (SELECT FROM locations l JOIN vms v ON v.location = l.name AND v.project_id = ${projectId}
          JOIN hosts h ON h.id = v.host_id
          WHERE v.firewall_applied < v.firewall_wanted AND v.firewall_behind_since <= ${heldAt} AND h.state <> 'down')`

const hold = statement<never, { addresses: string[]; projectIds: string[] }>(
  'address_hold',
  `INSERT INTO held_addresses (address, project_id)
   SELECT g.address, g.project_id FROM unnest(:addresses::inet[], :projectIds::uuid[]) AS g (address, project_id)
   WHERE ${mayStillAllow('g.project_id', 'slipway_now()')}`,
)

/** Releases the addresses that no firewall allows any more, and returns their number. */
export const releaseAddresses = statement<never>(
  'address_release',
  `DELETE FROM held_addresses a WHERE NOT ${mayStillAllow('a.project_id', 'a.held_at')}`,
).run

/** Holds the dynamic addresses that VMs lose while a firewall may still allow them. */
export async function holdAddresses(
  tx: Tx,
  vms: { project_id: string; public_address: string | null; is_address_static: boolean }[],
): Promise<void> {
  const reachable = vms.filter((vm) => vm.public_address !== null && !vm.is_address_static)
  if (reachable.length === 0) return
  await hold.run(tx, {
    addresses: reachable.map(({ public_address }) => public_address!),
    projectIds: reachable.map(({ project_id }) => project_id),
  })
}

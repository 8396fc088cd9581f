import { createDatabase } from '@slipway/testing/database.ts'
import { addLocation, rows } from '@slipway/testing/fleet.ts'
import { addOrganization } from '@slipway/testing/people.ts'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { setUpProject } from '../../src/accounts/project-setup.ts'
import { numberToAddress } from '../../src/domain/addresses.ts'
import { Database, type Tx } from '../../src/postgres/database.ts'
import { findFreeAddresses } from '../../src/store/network/addresses.ts'
import { blocksOf, plansOf, scansOf } from '../support/explain.ts'

let store: Awaited<ReturnType<typeof createDatabase>>
let database: Database
let subnet: { id: string; network_id: string; project_id: string; location: string }

beforeAll(async () => {
  store = await createDatabase()
  database = new Database({ url: store.url, poolSize: 4 })
  await addLocation(database)
  const organizationId = await addOrganization(database)
  const project = await database.transaction((tx) => setUpProject(tx, { organizationId, name: 'p' }))
  ;[subnet] = (await rows(database, 'SELECT * FROM subnets WHERE project_id = $1', project.id)) as [
    typeof subnet,
  ]
})
afterAll(async () => {
  await database.close()
  await store.drop()
})

const base = 0x0a_4d_00_00
const first = numberToAddress(base)

/**
 * Creates VMs with these private and public addresses, as offsets from the first. VMs with an offset in `heldBack` have
 * no public address; that address is held, like the address of a removed VM.
 */
async function take(indexes: number[], heldBack: number[] = []): Promise<void> {
  await rows(
    database,
    `INSERT INTO vms (id, project_id, name, type, family, gpu_count, location, state, image, os_disk_id,
                      interface_id, network_id, subnet_id, mac_address, private_address, public_address, public_address_id)
     SELECT id, $1, id::text, 't', 'f', 1, $2, 'STATE_RUNNING', 'i', id, id, $3, $4, id::text, $5::inet + n,
            CASE WHEN n = ANY ($7::int[]) THEN NULL ELSE $5::inet + n END, CASE WHEN n = ANY ($7::int[]) THEN NULL ELSE id END
     FROM (SELECT gen_random_uuid() AS id, n FROM unnest($6::int[]) n) new`,
    ...[subnet.project_id, subnet.location, subnet.network_id, subnet.id, first, indexes, heldBack],
  )
  await rows(
    database,
    'INSERT INTO held_addresses (address, project_id) SELECT $1::inet + n, $2 FROM unnest($3::int[]) n',
    ...[first, subnet.project_id, heldBack],
  )
}

async function releaseAll(): Promise<void> {
  await rows(database, 'DELETE FROM vms')
  await rows(database, 'DELETE FROM held_addresses')
}

/** Runs only the exact search, without guessing. */
async function find(count: number, db: Pick<Tx, 'query'> = database) {
  const range = { candidates: [], first, count }
  const tx = { ...database.withoutTransaction, query: db.query.bind(db) }
  const wanted = { networkId: subnet.network_id, inside: range, outside: range }
  const [found] = await findFreeAddresses(tx, [wanted], true)
  return found!
}

test('a free address is found if there is one, in every distribution of used addresses', async () => {
  const all = (count: number) => Array.from({ length: count }, (_, n) => n)
  const pool = fc.integer({ min: 1, max: 700 }).chain((count) =>
    fc.record({
      count: fc.constant(count),
      free: fc.uniqueArray(fc.integer({ min: 0, max: count - 1 }), { maxLength: 3 }),
      held: fc.uniqueArray(fc.integer({ min: 0, max: count - 1 }), { maxLength: 20 }),
    }),
  )
  await fc.assert(
    fc.asyncProperty(pool, async ({ count, free, held }) => {
      const taken = all(count).filter((n) => !free.includes(n))
      await take(
        taken,
        held.filter((n) => taken.includes(n)),
      )
      const freeAddresses = free.map((n) => numberToAddress(base + n))
      const expected = freeAddresses.length > 0 ? expect.toBeOneOf(freeAddresses) : null
      expect(await find(count)).toEqual({ privateAddress: expected, publicAddress: expected })
      await releaseAll()
    }),
    { numRuns: 30 },
  )
})

test.each([
  ['95 % full with scattered gaps', (n: number) => n % 20 !== 7],
  ['95 % full with one large gap', (n: number) => n >= 410],
  ['full except for one address', (n: number) => n !== 5_001],
])('a search in a pool that is %s reads far fewer blocks than the pool has addresses', async (_, isTaken) => {
  const count = 8_192
  await take(Array.from({ length: count }, (_, n) => n).filter(isTaken))
  for (const table of ['vms', 'public_addresses']) await rows(database, `VACUUM ANALYZE ${table}`)
  const nothing = { ordinal: 0, private_addresses: [], public_addresses: [] }
  const plans = await plansOf(database, nothing, (db) => find(count, db))
  // One statement guesses, here without candidates; the other two search.
  expect(plans).toHaveLength(3)
  for (const plan of plans) {
    expect(scansOf(plan, 'vms').filter((node) => node['Node Type'] === 'Seq Scan')).toEqual([])
    // At worst, the search counts the entries of all 32 address blocks, then looks up 256 addresses.
    expect(blocksOf(plan)).toBeLessThan(count / 2)
  }
  await releaseAll()
})

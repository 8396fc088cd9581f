import { join } from 'node:path'
import { type Embedded, openEmbedded } from '@slipway/server/postgres/embedded/index.ts'
import { root } from '../root.ts'

/**
 * Opens the PostgreSQL for the tests of this checkout. The first process starts it, and the last one stops
 * it.
 */
export const openTestPostgres = (): Promise<Embedded> =>
  openEmbedded({
    dataDir: join(root, '.cache/test-postgres'),
    log: () => {},
    // Tests kill servers, not PostgreSQL, so its data need not survive a power cut.
    settings: { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off', max_connections: '400' },
  })

import { join } from 'node:path'
import { type Embedded, openEmbedded } from '@slipway/server/postgres/embedded/index.ts'
import { root } from '../root.ts'

/** The PostgreSQL of this checkout's tests: started by the first process that opens it, stopped by the last. */
export const openTestPostgres = (): Promise<Embedded> =>
  openEmbedded({
    dataDir: join(root, '.cache/test-postgres'),
    log: () => {},
    // Tests kill servers, not PostgreSQL: nothing here has to survive a power cut.
    settings: { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off', max_connections: '400' },
  })

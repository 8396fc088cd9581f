// A minimal server in its own process: opens the database, reports it, and exits on request.
import pg from 'pg'
import { openEmbedded } from '../../src/postgres/embedded/index.ts'

const [dataDir, mode] = process.argv.slice(2)
const say = (line: string) => process.stdout.write(`${line}\n`)

try {
  const embedded = await openEmbedded({ dataDir: dataDir!, log: (line) => say(`log ${line}`) })
  const pool = new pg.Pool({ connectionString: embedded.url })
  pool.on('error', () => {})
  const { rows } = await pool.query('SELECT pg_postmaster_start_time()::text AS started')
  process.once('SIGTERM', async () => {
    await pool.end()
    await embedded.stop()
    say('left')
    process.exit(0)
  })
  say(`ready ${rows[0].started}`)
  if (mode === 'write') {
    await pool.query('CREATE TABLE IF NOT EXISTS rows (id bigint GENERATED ALWAYS AS IDENTITY)')
    for (;;) {
      const { rows } = await pool.query('INSERT INTO rows DEFAULT VALUES RETURNING id')
      say(`wrote ${rows[0].id}`)
    }
  }
} catch (error) {
  say(`failed ${(error as Error).message}`)
  process.exit(1)
}

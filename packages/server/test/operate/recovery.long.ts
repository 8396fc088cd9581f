import { execFileSync } from 'node:child_process'
import { appendFileSync, chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { query } from '@slipway/testing/database.ts'
import { eventually } from '@slipway/testing/eventually.ts'
import { Launcher } from '@slipway/testing/launcher.ts'
import { afterAll, expect, test } from 'vitest'
import { Database } from '../../src/postgres/database.ts'
import { migrate } from '../../src/postgres/migrate.ts'
import { DebianServer, debianPostgres } from '../support/postgres/replicated.ts'

const launcher = new Launcher()
const servers: DebianServer[] = []
afterAll(async () => {
  for (const server of servers) server.kill()
  await launcher.clear()
})

test.skipIf(!debianPostgres)(
  'a database is recovered to a point in time from a base backup and the archived log, as the page about backups describes',
  async () => {
    const archive = join(launcher.dir, 'wal')
    mkdirSync(archive)
    chmodSync(archive, 0o777)
    const primary = await DebianServer.create(join(launcher.dir, 'primary'), [
      'archive_mode = on',
      `archive_command = 'test ! -f ${archive}/%f && cp %p ${archive}/%f'`,
    ])
    servers.push(primary)
    await migrate(primary.urlOf())
    const restored = await DebianServer.copyOf(join(launcher.dir, 'restored'), primary)
    servers.push(restored)
    const add = (name: string) =>
      query(primary.urlOf(), `INSERT INTO organizations (id, name) VALUES (gen_random_uuid(), $1)`, [name])
    await add('before')
    const [point] = await query<{ at: string }>(primary.urlOf(), 'SELECT clock_timestamp()::text AS at')
    await add('after')
    const [segment] = await query<{ name: string }>(
      primary.urlOf(),
      'SELECT pg_walfile_name(pg_switch_wal()) AS name',
    )
    await eventually(async () => {
      const [row] = await query<{ name: string | null }>(
        primary.urlOf(),
        'SELECT last_archived_wal AS name FROM pg_stat_archiver',
      )
      return row?.name != null && row.name >= segment!.name
    })
    primary.kill()

    appendFileSync(
      join(restored.dataDir, 'postgresql.conf'),
      `restore_command = 'cp ${archive}/%f %p'\nrecovery_target_time = '${point!.at}'\nrecovery_target_action = 'promote'\narchive_mode = off\n`,
    )
    writeFileSync(join(restored.dataDir, 'recovery.signal'), '')
    if (process.getuid?.() === 0)
      execFileSync('chown', ['-R', '--reference', restored.dataDir, restored.dataDir])
    await restored.start()
    await eventually(async () => {
      const [row] = await query<{ on: boolean }>(restored.urlOf(), 'SELECT pg_is_in_recovery() AS on')
      return row?.on === false
    })
    await migrate(restored.urlOf())
    const database = new Database({ url: restored.urlOf(), poolSize: 1 })
    const { rows } = await database.query({ text: 'SELECT name FROM organizations' })
    await database.close()
    expect(rows).toEqual([{ name: 'before' }])
  },
)

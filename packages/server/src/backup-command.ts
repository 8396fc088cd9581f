import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { readConfig } from './command-setup.ts'
import { type Config, ConfigError } from './config/index.ts'
import { backUp, removeOldBackups, restore } from './postgres/embedded/backup.ts'

const backupUsage = `Usage: slipway-server backup --to DIR [--keep N] [--data-dir DIR] [--config FILE]

Backs up the embedded database into a new folder in DIR, while the service runs, and checks that the backup can be restored.
With --keep, only the N newest backups stay in DIR. The key for secrets at rest (secret.key) is not part of a backup: keep a
copy of it elsewhere. For your own PostgreSQL, use its tools (docs/operate/backups.md).`

const restoreUsage = `Usage: slipway-server restore BACKUP [--data-dir DIR] [--config FILE]

Replaces the embedded database with a backup. Stop the service first. The earlier database is kept
in a folder next to the new one.
docs/operate/backups.md says how to continue if VMs have changed since the backup.`

const options = {
  to: { type: 'string' },
  keep: { type: 'string' },
  'data-dir': { type: 'string' },
  config: { type: 'string' },
  help: { type: 'boolean' },
} as const

export async function runBackupCommand(argv: string[]): Promise<void> {
  const { to, keep, help, ...flags } = parseArgs({ args: argv, options }).values
  if (help) return console.log(backupUsage)
  if (to === undefined) throw new ConfigError(`--to is required\n\n${backupUsage}`)
  if (keep !== undefined && !/^[1-9]\d{0,5}$/.test(keep))
    throw new ConfigError(`--keep ${keep}: must be the number of backups to keep, at least 1`)
  const { path, record } = await backUp(dataDirOf(flags), to)
  console.log(
    `${path}: ${record.rows} rows, schema ${record.schema_version}. Verified: the backup was restored to a temporary database and read completely.`,
  )
  if (keep === undefined) return
  for (const old of await removeOldBackups(resolve(to), Number(keep))) console.log(`${old}: removed`)
}

export async function runRestoreCommand(argv: string[]): Promise<void> {
  const { values, positionals } = parseArgs({ args: argv, options, allowPositionals: true })
  if (values.help) return console.log(restoreUsage)
  const [from, ...more] = positionals
  if (from === undefined || more.length > 0 || values.to !== undefined || values.keep !== undefined)
    throw new ConfigError(restoreUsage)
  const { record, replaced } = await restore(dataDirOf(values), from)
  console.log(`The database is restored as it was at ${record.taken_at}.`)
  if (replaced) console.log(`The replaced database is in ${replaced}: remove it when you no longer need it.`)
  console.log(
    'If VMs or disks have changed since then, set [operations] restored = true before you start the service; see docs/operate/backups.md.',
  )
}

function dataDirOf(flags: { 'data-dir'?: string; config?: string }): string {
  const given = (['data-dir', 'config'] as const).flatMap((name) =>
    flags[name] === undefined ? [] : [`--${name}`, flags[name]],
  )
  const { server, database }: Config = readConfig(given)
  if (database.urls.length > 0)
    throw new ConfigError(
      `the service uses an external PostgreSQL server (set by ${database.source}): back it up and restore it with PostgreSQL's own tools, such as pg_basebackup (docs/operate/backups.md)`,
    )
  return server.dataDir
}

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Config } from '../config/index.ts'
import { type Finding, ok, problem, warning } from '../engines/incus/operate/finding.ts'
import { openEmbedded } from '../postgres/embedded/index.ts'
import { type DatabaseFacts, examineDatabase } from '../postgres/examine.ts'
import { migrations } from '../postgres/migrate.ts'

/** The oldest version that the tests use. */
const oldestVersion = 15
const usedShare = 0.8

interface DatabaseResult {
  findings: Finding[]
  /** Facts about the primary; undefined if there is none yet, or if it cannot be reached. */
  facts: DatabaseFacts | undefined
}

export async function databaseFindings(config: Config): Promise<DatabaseResult> {
  if (config.database.urls.length > 0) return externalFindings(config)
  const { dataDir } = config.server
  if (!existsSync(join(dataDir, 'postgres-home')))
    return { findings: [ok('database', 'embedded; the first start creates it')], facts: undefined }
  try {
    const embedded = await openEmbedded({ dataDir, log: () => {} })
    const facts = await examineDatabase(embedded.url).finally(() => embedded.stop())
    const findings = [ok('database', `embedded PostgreSQL ${facts.majorVersion}`), schemaFinding(facts)]
    return { findings, facts }
  } catch (error) {
    const advice =
      'see postgres.log; the file postgres-home in the data directory contains the path of its folder'
    return { findings: [problem('database', (error as Error).message, advice)], facts: undefined }
  }
}

async function externalFindings(config: Config): Promise<DatabaseResult> {
  const { urls, source } = config.database
  const findings: Finding[] = []
  let primary: DatabaseFacts | undefined
  for (const url of urls) {
    // The driver also accepts URLs without a host, for a socket on this machine.
    const { host, hostname } = URL.canParse(url) ? new URL(url) : { host: '', hostname: '' }
    const step = `database ${host}`.trim()
    try {
      const facts = await examineDatabase(url)
      if (facts.isReadOnly) findings.push(ok(step, 'responds; read-only, so it is a standby'))
      else {
        primary ??= facts
        findings.push(ok(step, `PostgreSQL ${facts.majorVersion}, writable`))
        findings.push(...primaryFindings(facts, config, step, hostname))
      }
    } catch (error) {
      findings.push(problem(step, `cannot be used: ${(error as Error).message}`, `check ${source}`))
    }
  }
  if (!primary)
    findings.push(problem('database', 'no server is writable', 'start the primary, or promote a standby'))
  return { findings, facts: primary }
}

function primaryFindings(facts: DatabaseFacts, config: Config, step: string, hostname: string): Finding[] {
  const { settings } = facts
  const problems: (Finding | false)[] = [
    facts.majorVersion < oldestVersion &&
      warning(step, `PostgreSQL ${facts.majorVersion} is not tested`, `use ${oldestVersion} or later`),
    ...['fsync', 'full_page_writes', 'autovacuum'].map(
      (name) =>
        settings[name] !== 'on' &&
        problem(
          step,
          `${name} is ${settings[name]}: data can be lost or grow without limit`,
          `set ${name} = on`,
        ),
    ),
    settings.synchronous_commit === 'off' &&
      problem(
        step,
        'synchronous_commit is off: a crash can lose changes that were already confirmed to clients',
        'set synchronous_commit = on',
      ),
    settings.server_encoding !== 'UTF8' &&
      problem(step, `the encoding is ${settings.server_encoding}`, 'create the database with ENCODING UTF8'),
    settings.data_checksums !== 'on' &&
      warning(step, 'data checksums are off: damaged pages are not noticed', 'pg_checksums --enable'),
    facts.isSuperuser &&
      warning(
        step,
        'the service logs in as a superuser',
        'give the service a role that only owns its own database',
      ),
    !facts.isEncrypted &&
      !isLocal(hostname) &&
      problem(step, 'the connection is not encrypted', 'add ?sslmode=verify-full to the URL'),
    connectionFinding(facts, config, step),
    facts.hasArchiveFailed
      ? problem(
          step,
          'the last attempt to archive the write-ahead log failed',
          'check archive_command and the log of PostgreSQL',
        )
      : !facts.isArchiving &&
        warning(
          step,
          'the write-ahead log is not archived, so recovery to a point in time is not possible',
          'docs/operate/backups.md describes continuous archiving',
        ),
  ]
  return [...problems.filter((each) => each !== false), schemaFinding(facts)]
}

function connectionFinding(facts: DatabaseFacts, { database }: Config, step: string): Finding | false {
  const max = Number(facts.settings.max_connections)
  const needed = facts.connectionCount + database.poolSize + 1
  return (
    needed > max * usedShare &&
    warning(
      step,
      `${facts.connectionCount} of ${max} connections are in use, and a process needs ${database.poolSize + 1}`,
      'raise max_connections, or lower [database] pool_size',
    )
  )
}

const isLocal = (hostname: string): boolean =>
  hostname === '' || hostname === 'localhost' || /^(%2F|127\.|\[?::1)/i.test(hostname)

function schemaFinding({ schemaVersion }: DatabaseFacts): Finding {
  const newest = migrations().at(-1)!.version
  if (schemaVersion > newest)
    return warning(
      'schema',
      `version ${schemaVersion} was written by a newer Slipway; the newest version that this Slipway supports is ${newest}`,
      'upgrade this installation',
    )
  const next = schemaVersion < newest ? `; the next start upgrades it to ${newest}` : ''
  return ok(
    'schema',
    schemaVersion === 0 ? 'empty; the first start creates it' : `version ${schemaVersion}${next}`,
  )
}

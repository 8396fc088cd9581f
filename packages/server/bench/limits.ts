import { type ChildProcess, fork, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { runChild } from './load.ts'
import type { RunningService } from './running-service.ts'

export type BareTask =
  | {
      kind: 'routes'
      databaseUrl: string
      token: string
      vmIds: string[]
      projectId: string
      /** The responses to send, by the name in the path. */
      responses: Record<string, RecordedResponse>
    }
  | { kind: 'transactions' | 'inserts'; databaseUrl: string; connections: number; seconds: number }

/** A response of the service, with exactly its body and its headers. */
export interface RecordedResponse {
  headers: Record<string, string>
  body: string
}

export interface BareRoutes {
  url: string
  pid: number
  stop(): void
}

/**
 * Starts a process whose routes `/{name}/{bare,row,json,page}` send the response of that name: `bare` without
 * a SELECT, the others after a SELECT of one row, of JSON text or of 100 rows.
 */
export function startBareRoutes(task: Omit<BareTask & { kind: 'routes' }, 'kind'>): Promise<BareRoutes> {
  return new Promise((resolve, reject) => {
    const child: ChildProcess = fork(fileURLToPath(new URL('./bare-child.mjs', import.meta.url)))
    child.once('message', (url) =>
      resolve({ url: String(url), pid: child.pid!, stop: () => void child.kill() }),
    )
    child.once('error', reject)
    child.once('exit', (code) => code && reject(new Error(`the bare routes exited with code ${code}`)))
    child.send({ kind: 'routes', ...task })
  })
}

/** The rates of the smallest durable changes, which changes through the API are compared with. */
export interface WriteBaselines {
  connections: number
  transactions: number
  inserts: number
  pgbench?: number
}

/**
 * Measures the smallest durable changes per second over this number of connections, with Slipway's database
 * layer and, if it is installed, with `pgbench`.
 */
export async function measureWriteBaselines(
  service: RunningService,
  connections: number,
  seconds: number,
): Promise<WriteBaselines> {
  await service.database.query({
    text: 'CREATE TABLE IF NOT EXISTS bench_rows (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, n integer)',
  })
  const { databaseUrl } = service
  const task = { databaseUrl, connections, seconds }
  const pgbench = runPgbench(databaseUrl, connections, seconds)
  return {
    connections,
    transactions: await runChild<number>('bare-child', { kind: 'transactions', ...task }),
    inserts: await runChild<number>('bare-child', { kind: 'inserts', ...task }),
    ...(pgbench !== undefined && { pgbench }),
  }
}

/**
 * Returns the number of transactions per second, with one INSERT each; undefined if pgbench is not installed.
 */
function runPgbench(databaseUrl: string, connections: number, seconds: number): number | undefined {
  const dir = mkdtempSync(join(tmpdir(), 'slipway-pgbench-'))
  const script = join(dir, 'insert.sql')
  writeFileSync(script, 'BEGIN;\nINSERT INTO bench_rows (n) VALUES (1);\nCOMMIT;\n')
  const flags = ['-n', '-M', 'prepared', '-c', connections, '-T', seconds, '-f', script, databaseUrl]
  const { stdout, error } = spawnSync('pgbench', flags.map(String), { encoding: 'utf8' })
  rmSync(dir, { recursive: true })
  const [, tps] = /tps = ([\d.]+)/.exec(error ? '' : stdout) ?? []
  return tps === undefined ? undefined : Number(tps)
}

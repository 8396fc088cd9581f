import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient, logIn } from '@slipway/sdk'
import pg from 'pg'
import { createDatabase } from '../../../server/test/database.ts'

const root = join(import.meta.dirname, '../../../..')

export interface Credentials {
  console_url: string
  project_id: string
  organization_id: string
  email: string
  password: string
  access_key: string
  operator_key: string
}

/** There are two locations, one of them small enough to run out, and VMs boot in a second. */
const settings = `
${location('us-east1-a', '198.18.0.0/18', ['A40 48GB PCIe', 'A100 40GB PCIe', 'A100 80GB PCIe', 'L40S 48GB PCIe'], 2)}
${location('eu-north1-a', '198.18.128.0/18', ['A100 40GB PCIe'], 1)}
[webhooks]
allow_private_ranges = ["127.0.0.0/8"]
[limits]
requests_per_second = 1000
burst = 2000
`

function location(name: string, publicIpv4: string, models: string[], hosts: number): string {
  const list = models.map((model) => `{ count = ${hosts}, model = "${model}", gpus = 8 }`)
  return `
[[location]]
name = "${name}"
description = "Simulated"
engine = "simulated"
storage = "shared"
public_ipv4 = "${publicIpv4}"
[location.simulated]
boot_ms = [700, 1000]
quarantine_ms = 100
hosts = [${list.join(', ')}]
`
}

/** Starts a real server process on a database of its own. */
async function startProcess(flags: string[]) {
  const database = await createDatabase()
  const dataDir = mkdtempSync(join(tmpdir(), 'slipway-console-'))
  const configPath = join(dataDir, 'slipway.toml')
  writeFileSync(configPath, settings)
  let child: ChildProcess | undefined
  let url = ''

  /** Returns what it said until it was ready. The port stays the same from one start to the next. */
  async function start(): Promise<string> {
    const args = ['--port', url ? new URL(url).port : '0', '--data-dir', dataDir, '--config', configPath]
    child = spawn(process.execPath, [join(root, 'packages/server/dist/main.js'), ...args, ...flags], {
      env: { ...process.env, DATABASE_URL: database.url, SLIPWAY_LOG_LEVEL: 'info' },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const said = await ready(child)
    url = /http:\/\/127\.0\.0\.1:\d+/.exec(said)![0]
    return said
  }
  async function stop(): Promise<void> {
    const stopped = child
    if (!stopped || stopped.exitCode !== null) return
    const exit = new Promise((resolve) => stopped.once('exit', resolve))
    stopped.kill('SIGTERM')
    await exit
  }
  /** Looks at the database, or turns its clock. */
  async function sql<Row = object>(text: string, values: unknown[] = []): Promise<Row[]> {
    const connection = new pg.Client({ connectionString: database.url })
    await connection.connect()
    return (await connection.query(text, values).finally(() => connection.end())).rows
  }
  const said = await start()
  return {
    url,
    said,
    dataDir,
    start,
    stop,
    sql,
    async close() {
      await stop()
      await database.drop()
      rmSync(dataDir, { recursive: true })
    },
  }
}

/** Starts a service with the demo, whose people and keys the tests use. */
export async function startService() {
  const server = await startProcess([])
  const credentials: Credentials = JSON.parse(readFileSync(join(server.dataDir, 'credentials.json'), 'utf8'))
  const { access_key, operator_key, email, password } = credentials
  const owner = await logIn({ baseUrl: server.url, email, password })
  const asCaller = (token: string | typeof owner.token) => createClient({ baseUrl: server.url, token })
  return {
    ...server,
    credentials,
    tenant: asCaller(access_key),
    asOwner: asCaller(owner.token),
    operator: asCaller(operator_key),
  }
}

/** Starts a service with an empty store, and the code that makes the first operator. */
export async function startEmptyService() {
  const server = await startProcess(['--no-demo'])
  return { ...server, setupCode: /Set-up code[^:]*: (\S+)/.exec(server.said)![1]! }
}

export type Service = Awaited<ReturnType<typeof startService>>

function ready(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let output = ''
    const listen = (chunk: Buffer) => {
      output += chunk
      if (output.includes('"msg":"ready"')) resolve(output)
    }
    child.stdout?.on('data', listen)
    child.stderr?.on('data', listen)
    child.once('exit', (code) => reject(new Error(`the server ended with ${code}:\n${output}`)))
  })
}

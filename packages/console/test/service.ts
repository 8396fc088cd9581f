import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient, logIn } from '@slipway/sdk'
import { createDatabase } from '../../server/test/harness.ts'

const root = join(import.meta.dirname, '../../..')

export interface Credentials {
  console_url: string
  project_id: string
  organization_id: string
  email: string
  password: string
  access_key: string
  operator_key: string
}

/** Two locations, one of them small enough to run out, and VMs that boot in a second. */
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

/** A real server process with the demo, on a database of its own. */
export async function startService() {
  const database = await createDatabase()
  const dataDir = mkdtempSync(join(tmpdir(), 'slipway-console-'))
  const configPath = join(dataDir, 'slipway.toml')
  writeFileSync(configPath, settings)
  let child: ChildProcess | undefined
  let port = '0'

  async function start(): Promise<void> {
    const args = ['--port', port, '--data-dir', dataDir, '--config', configPath]
    child = spawn(process.execPath, [join(root, 'packages/server/dist/main.js'), ...args], {
      env: { ...process.env, DATABASE_URL: database.url, SLIPWAY_LOG_LEVEL: 'info' },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    await ready(child)
    port = new URL(credentials().console_url).port
  }
  async function stop(): Promise<void> {
    const stopped = child
    if (!stopped || stopped.exitCode !== null) return
    const exit = new Promise((resolve) => stopped.once('exit', resolve))
    stopped.kill('SIGTERM')
    await exit
  }
  const credentials = (): Credentials => JSON.parse(readFileSync(join(dataDir, 'credentials.json'), 'utf8'))

  await start()
  const { console_url, access_key, operator_key, email, password } = credentials()
  const owner = await logIn({ baseUrl: console_url, email, password })
  return {
    credentials: credentials(),
    url: console_url,
    tenant: createClient({ baseUrl: console_url, token: access_key }),
    asOwner: createClient({ baseUrl: console_url, token: owner.token }),
    operator: createClient({ baseUrl: console_url, token: operator_key }),
    start,
    stop,
    async close() {
      await stop()
      await database.drop()
      rmSync(dataDir, { recursive: true })
    },
  }
}

export type Service = Awaited<ReturnType<typeof startService>>

function ready(child: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    let output = ''
    const listen = (chunk: Buffer) => {
      output += chunk
      if (output.includes('"msg":"ready"')) resolve()
    }
    child.stdout?.on('data', listen)
    child.stderr?.on('data', listen)
    child.once('exit', (code) => reject(new Error(`the server ended with ${code}:\n${output}`)))
  })
}

import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { root } from './root.ts'

const program = join(root, 'packages/server/dist/main.js')

export interface Credentials {
  api_url: string
  project_id: string
  organization_id: string
  access_key: string
  operator_key: string
  email: string
  password: string
}

export interface RealServer extends Credentials {
  dataDir: string
  stop(): Promise<void>
}

const location = (name: string, block: string, bootMs: number) => `
[[location]]
name = "${name}"
description = "Simulated ${name}"
engine = "simulated"
storage = "shared"
public_ipv4 = "${block}"

[location.simulated]
boot_ms = [${bootMs}, ${bootMs}]
quarantine_ms = 0
hosts = [
  { count = 1, model = "A40 48GB PCIe", gpus = 8 },
  { count = 1, model = "A100 40GB PCIe", gpus = 8 },
]
`

/** The real program as `npm start` runs it, with two small simulated locations, in a folder of its own. */
export async function startRealServer(options: { bootMs?: number } = {}): Promise<RealServer> {
  const folder = mkdtempSync(join(tmpdir(), 'slipway-real-'))
  const dataDir = join(folder, '.slipway')
  const config = join(folder, 'slipway.toml')
  const bootMs = options.bootMs ?? 0
  writeFileSync(
    config,
    location('us-east1-a', '198.18.0.0/18', bootMs) + location('eu-north1-a', '198.18.64.0/18', bootMs),
  )
  const child = spawn(process.execPath, [program, '--port', '0', '--data-dir', dataDir, '--config', config], {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, SLIPWAY_LOG_LEVEL: 'warn' },
  })
  let said = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      said = (said + text).slice(-4000)
    })
  }
  const stop = async () => {
    await end(child)
    rmSync(folder, { recursive: true, force: true })
  }
  try {
    const credentials = await whenReady(child, join(dataDir, 'credentials.json'))
    return { ...credentials, dataDir, stop }
  } catch (error) {
    await stop()
    throw new Error(`${(error as Error).message}\n${said}`)
  }
}

async function whenReady(child: ChildProcess, path: string): Promise<Credentials> {
  const giveUpAt = Date.now() + 60_000
  while (Date.now() < giveUpAt) {
    if (child.exitCode !== null) throw new Error(`the server ended with ${child.exitCode}`)
    const credentials = readCredentials(path)
    if (credentials) {
      const answer = await fetch(new URL('/readyz', credentials.api_url)).catch(() => undefined)
      if (answer?.ok) return credentials
    }
    await pause(100)
  }
  throw new Error('the server did not become ready within a minute')
}

function readCredentials(path: string): Credentials | undefined {
  try {
    return JSON.parse(readFileSync(path, 'utf8'))
  } catch {
    return undefined
  }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const closed = new Promise((resolve) => child.once('close', resolve))
  child.kill('SIGTERM')
  await closed
}

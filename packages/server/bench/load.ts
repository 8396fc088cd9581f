import { fork, spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { endedChildrenCpuMs } from './cpu.ts'
import type { Tenant } from './fixtures.ts'

/** A VM that a load made, and the operation of its last change. */
export interface Made extends Tenant {
  vmId: string
  operationId: string
}

interface Shape {
  url: string
  clients: number
  /** It ends after this count or after this time. */
  count?: number
  seconds?: number
}

/** Creations and deletions are over when their operation has succeeded. */
export type Load = Shape &
  (
    | { kind: 'create'; tenants: Tenant[]; location: string }
    | { kind: 'delete'; vms: Made[] }
    | { kind: 'get'; paths: string[]; token: string }
  )

export interface LoadResult {
  count: number
  perSecond: number
  /** Times of the whole change, in milliseconds. */
  p50: number
  p99: number
  /** Until a change was promised. */
  acceptedP50: number
  loadCores: number
  made: Made[]
}

/** Deletes the VMs that loads have created. */
export async function deleteMade(url: string, results: Pick<LoadResult, 'made'>[]): Promise<void> {
  const vms = results.flatMap(({ made }) => made)
  await runLoad({ kind: 'delete', url, clients: 32, count: vms.length, vms })
}

/** Runs a child in a process of its own, so that it is not the service's event loop that is measured. */
export function runChild<Result>(name: string, task: unknown): Promise<Result> {
  return new Promise((resolve, reject) => {
    const child = fork(fileURLToPath(new URL(`./${name}.mjs`, import.meta.url)))
    child.once('message', (result) => {
      child.kill()
      resolve(result as Result)
    })
    child.once('error', reject)
    child.once('exit', (code) => code && reject(new Error(`${name} left with ${code}`)))
    child.send(task as object)
  })
}

export const runLoad = (load: Load): Promise<LoadResult> => runChild('load-child', load)

export interface Reading {
  url: string
  /** Read at random. */
  paths: string[]
  token: string
  connections: number
  seconds: number
}

export type ReadResult = Omit<LoadResult, 'acceptedP50' | 'made'>

/** A client in C takes a fraction of a core where one in Node takes a whole one. */
export const hasWrk = spawnSync('wrk', ['-v']).error === undefined

export const readerName = hasWrk ? 'wrk' : 'a Node client (apt-get install wrk for one that takes less CPU)'

/** Repeats a GET over this number of connections. */
export const read = (reading: Reading): Promise<ReadResult> => (hasWrk ? byWrk(reading) : byNode(reading))

const byNode = ({ connections, ...reading }: Reading) =>
  runLoad({ kind: 'get', clients: connections, ...reading })

function byWrk({ url, paths, token, connections, seconds }: Reading): Promise<ReadResult> {
  const script = atRandom(paths)
  const flags = ['-t1', `-c${connections}`, `-d${seconds}s`, '--latency', '-s', script.file]
  const cpuBefore = endedChildrenCpuMs()
  return new Promise((resolve, reject) => {
    const child = spawn('wrk', [...flags, '-H', `Authorization: Bearer ${token}`, url], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    let said = ''
    child.stdout.setEncoding('utf8').on('data', (text) => {
      said += text
    })
    child.once('error', reject)
    child.once('close', () => {
      script.remove()
      if (/Non-2xx|Socket errors/.test(said)) return reject(new Error(`${paths[0]}: ${said}`))
      const [, count, measuredFor, unit] = /(\d+) requests in ([\d.]+)(m?s)/.exec(said)!
      const took = Number(measuredFor) / (unit === 'ms' ? 1000 : 1)
      const latency = (share: string) => milliseconds(new RegExp(`${share}%\\s+([\\d.]+)(\\w+)`).exec(said)!)
      resolve({
        count: Number(count),
        perSecond: Number(count) / took,
        p50: latency('50'),
        p99: latency('99'),
        loadCores: (endedChildrenCpuMs() - cpuBefore) / 1000 / took,
      })
    })
  })
}

/** A script that has wrk request the paths at random; the requests are made once, and not as they are sent. */
function atRandom(paths: string[]): { file: string; remove: () => void } {
  const dir = mkdtempSync(join(tmpdir(), 'slipway-wrk-'))
  const file = join(dir, 'paths.lua')
  const list = paths.map((path) => JSON.stringify(path)).join(', ')
  const lua = [
    `local paths, made = { ${list} }, {}`,
    'init = function() for i, path in ipairs(paths) do made[i] = wrk.format("GET", path) end end',
    'request = function() return made[math.random(#made)] end',
  ]
  writeFileSync(file, lua.join('\n'))
  return { file, remove: () => rmSync(dir, { recursive: true }) }
}

function milliseconds([, number, unit]: RegExpExecArray): number {
  return Number(number) * (unit === 'us' ? 0.001 : unit === 'ms' ? 1 : 1000)
}

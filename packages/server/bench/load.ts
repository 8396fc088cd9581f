import { fork, spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { endedChildrenCpuMs } from './cpu.ts'
import type { Tenant } from './fixtures.ts'

/** A VM that a load created or deleted, and the operation that did it. */
export interface ChangedVm extends Tenant {
  vmId: string
  operationId: string
}

interface Shape {
  url: string
  clients: number
  /** The load ends after this many requests or after this time. */
  count?: number
  seconds?: number
}

/** A creation or deletion counts as done when its operation has succeeded. */
export type Load = Shape &
  (
    | { kind: 'create'; tenants: Tenant[]; location: string }
    | { kind: 'delete'; vms: ChangedVm[] }
    | { kind: 'get'; paths: string[]; token: string }
  )

export interface LoadResult {
  count: number
  perSecond: number
  /** The duration of the whole change, in milliseconds. */
  p50: number
  p99: number
  /** The time until a change was accepted. */
  acceptedP50: number
  loadCores: number
  changedVms: ChangedVm[]
}

/** Deletes the VMs that loads have created. */
export async function deleteVms(url: string, results: Pick<LoadResult, 'changedVms'>[]): Promise<void> {
  const vms = results.flatMap(({ changedVms }) => changedVms)
  await runLoad({ kind: 'delete', url, clients: 32, count: vms.length, vms })
}

/** Runs a script in a separate process, so that it does not affect the event loop that is measured. */
export function runChild<Result>(name: string, task: unknown): Promise<Result> {
  return new Promise((resolve, reject) => {
    const child = fork(fileURLToPath(new URL(`./${name}.mjs`, import.meta.url)))
    child.once('message', (result) => {
      child.kill()
      resolve(result as Result)
    })
    child.once('error', reject)
    child.once('exit', (code) => code && reject(new Error(`${name} exited with code ${code}`)))
    child.send(task as object)
  })
}

export const runLoad = (load: Load): Promise<LoadResult> => runChild('load-child', load)

export interface Reading {
  url: string
  /** Paths that are read at random. */
  paths: string[]
  token: string
  connections: number
  seconds: number
}

export type ReadResult = Omit<LoadResult, 'acceptedP50' | 'changedVms'>

/** `wrk`, which is written in C, needs a fraction of a core where a Node client needs a whole one. */
export const hasWrk = spawnSync('wrk', ['-v']).error === undefined

export const readerName = hasWrk ? 'wrk' : 'a Node client (install wrk for a client that uses less CPU)'

/** Repeats a GET over this number of connections. */
export const read = (reading: Reading): Promise<ReadResult> =>
  hasWrk ? readWithWrk(reading) : readWithNode(reading)

const readWithNode = ({ connections, ...reading }: Reading) =>
  runLoad({ kind: 'get', clients: connections, ...reading })

function readWithWrk({ url, paths, token, connections, seconds }: Reading): Promise<ReadResult> {
  const script = writeRandomPathScript(paths)
  const flags = ['-t1', `-c${connections}`, `-d${seconds}s`, '--latency', '-s', script.file]
  const cpuBefore = endedChildrenCpuMs()
  return new Promise((resolve, reject) => {
    const child = spawn('wrk', [...flags, '-H', `Authorization: Bearer ${token}`, url], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    let output = ''
    child.stdout.setEncoding('utf8').on('data', (text) => {
      output += text
    })
    child.once('error', reject)
    child.once('close', () => {
      script.remove()
      if (/Non-2xx|Socket errors/.test(output)) return reject(new Error(`${paths[0]}: ${output}`))
      const [, count, measuredFor, unit] = /(\d+) requests in ([\d.]+)(m?s)/.exec(output)!
      const took = Number(measuredFor) / (unit === 'ms' ? 1000 : 1)
      const latency = (share: string) =>
        milliseconds(new RegExp(`${share}%\\s+([\\d.]+)(\\w+)`).exec(output)!)
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

/** Writes a script that makes wrk request the paths at random. It builds each request only once. */
function writeRandomPathScript(paths: string[]): { file: string; remove: () => void } {
  const dir = mkdtempSync(join(tmpdir(), 'slipway-wrk-'))
  const file = join(dir, 'paths.lua')
  const list = paths.map((path) => JSON.stringify(path)).join(', ')
  const lua = [
    `local paths, requests = { ${list} }, {}`,
    'init = function() for i, path in ipairs(paths) do requests[i] = wrk.format("GET", path) end end',
    'request = function() return requests[math.random(#requests)] end',
  ]
  writeFileSync(file, lua.join('\n'))
  return { file, remove: () => rmSync(dir, { recursive: true }) }
}

function milliseconds([, number, unit]: RegExpExecArray): number {
  return Number(number) * (unit === 'us' ? 0.001 : unit === 'ms' ? 1 : 1000)
}

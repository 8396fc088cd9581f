import { fork, spawn, spawnSync } from 'node:child_process'
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
  /** It ends after so many, or after so long. */
  count?: number
  seconds?: number
}

/** Creations and deletions are over when their operation has succeeded. */
export type Load = Shape &
  (
    | { kind: 'create'; tenants: Tenant[]; location: string }
    | { kind: 'delete'; vms: Made[] }
    | { kind: 'get'; path: string; token: string }
  )

export interface LoadResult {
  count: number
  perSecond: number
  /** Of the whole, in milliseconds. */
  p50: number
  p99: number
  /** Until a change was promised. */
  acceptedP50: number
  loadCores: number
  made: Made[]
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
  path: string
  token: string
  connections: number
  seconds: number
}

export type ReadResult = Omit<LoadResult, 'acceptedP50' | 'made'>

/** A client in C takes a fraction of a core where one in Node takes a whole one. */
export const hasWrk = spawnSync('wrk', ['-v']).error === undefined

export const readerName = hasWrk ? 'wrk' : 'a Node client (apt-get install wrk for one that takes less CPU)'

/** The same GET over and over, over so many connections. */
export const read = (reading: Reading): Promise<ReadResult> => (hasWrk ? byWrk(reading) : byNode(reading))

const byNode = ({ connections, ...reading }: Reading) =>
  runLoad({ kind: 'get', clients: connections, ...reading })

function byWrk({ url, path, token, connections, seconds }: Reading): Promise<ReadResult> {
  const flags = ['-t1', `-c${connections}`, `-d${seconds}s`, '--latency']
  const cpuBefore = endedChildrenCpuMs()
  return new Promise((resolve, reject) => {
    const child = spawn('wrk', [...flags, '-H', `Authorization: Bearer ${token}`, url + path], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    let said = ''
    child.stdout.setEncoding('utf8').on('data', (text) => {
      said += text
    })
    child.once('error', reject)
    child.once('close', () => {
      if (/Non-2xx|Socket errors/.test(said)) return reject(new Error(`${path}: ${said}`))
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

function milliseconds([, number, unit]: RegExpExecArray): number {
  return Number(number) * (unit === 'us' ? 0.001 : unit === 'ms' ? 1 : 1000)
}

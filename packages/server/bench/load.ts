import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { Tenant } from './fixtures.ts'

export type Load =
  | {
      kind: 'create'
      url: string
      tenants: Tenant[]
      location: string
      clients: number
      count?: number | undefined
      seconds?: number
    }
  | { kind: 'get'; url: string; path: string; token: string; clients: number; seconds: number }

export interface LoadResult {
  perSecond: number
  p50: number
  p99: number
}

/** The client runs in a process of its own, so that it is not the service's event loop that is measured. */
export function runLoad(load: Load): Promise<LoadResult> {
  return new Promise((resolve, reject) => {
    const child = fork(fileURLToPath(new URL('./load-child.mjs', import.meta.url)))
    child.once('message', (result) => {
      child.kill()
      resolve(result as LoadResult)
    })
    child.once('error', reject)
    child.once('exit', (code) => code && reject(new Error(`the load client left with ${code}`)))
    child.send(load)
  })
}

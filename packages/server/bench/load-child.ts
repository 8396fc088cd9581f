import { Agent, request } from 'node:http'
import { sshKey } from '@slipway/testing/ssh-key.ts'
import type { Load, LoadResult } from './load.ts'

const agent = new Agent({ keepAlive: true, maxSockets: 256 })
let names = 0

process.once('message', async (load: Load) => {
  const latencies: number[] = []
  let left = 'count' in load && load.count !== undefined ? load.count : Number.POSITIVE_INFINITY
  const until =
    load.seconds === undefined ? Number.POSITIVE_INFINITY : performance.now() + load.seconds * 1000
  const begun = performance.now()
  await Promise.all(
    Array.from({ length: load.clients }, async (_, client) => {
      while (left-- > 0 && performance.now() < until) {
        const start = performance.now()
        await (load.kind === 'get' ? send(load.url, 'GET', load.path, load.token) : create(load, client))
        latencies.push(performance.now() - start)
      }
    }),
  )
  const seconds = (performance.now() - begun) / 1000
  latencies.sort((a, b) => a - b)
  const at = (share: number) => latencies[Math.floor(latencies.length * share)] ?? 0
  process.send!({ perSecond: latencies.length / seconds, p50: at(0.5), p99: at(0.99) } satisfies LoadResult)
})

async function create(load: Load & { kind: 'create' }, client: number): Promise<void> {
  const { projectId, token } = load.tenants[client % load.tenants.length]!
  const base = `/v0.1/projects/${projectId}`
  const body = {
    name: `b-${process.pid}-${names++}`,
    type: 'a100.1x',
    location: load.location,
    image: 'debian12',
    ssh_public_key: sshKey,
  }
  const { operation } = await send(load.url, 'POST', `${base}/vms`, token, body)
  const ended = await send(load.url, 'GET', `${base}/vms/operations/${operation.operation_id}?wait=30`, token)
  if (ended.state !== 'SUCCEEDED')
    throw new Error(`creation ended ${ended.state}: ${JSON.stringify(ended.result)}`)
}

// biome-ignore lint/suspicious/noExplicitAny: a measuring client trusts its service
function send(url: string, method: string, path: string, token: string, body?: unknown): Promise<any> {
  return new Promise((resolve, reject) => {
    const text = body === undefined ? undefined : JSON.stringify(body)
    const headers = {
      authorization: `Bearer ${token}`,
      ...(text !== undefined && {
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(text),
      }),
    }
    const call = request(url + path, { method, agent, headers }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk) => chunks.push(chunk))
      response.on('end', () => {
        const content = Buffer.concat(chunks).toString('utf8')
        if (response.statusCode !== 200)
          reject(new Error(`${method} ${path} answered ${response.statusCode}: ${content}`))
        else resolve(method === 'GET' && !path.includes('operations') ? undefined : JSON.parse(content))
      })
    })
    call.on('error', reject)
    call.end(text)
  })
}

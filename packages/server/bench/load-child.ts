import { Agent, request } from 'node:http'
import { sshKey } from '@slipway/testing/ssh-key.ts'
import { percentile } from './figures.ts'
import type { Load, LoadResult, Made } from './load.ts'

const agent = new Agent({ keepAlive: true, maxSockets: 1_024 })
let names = 0

process.once('message', async (load: Load) => {
  const latencies: number[] = []
  const accepted: number[] = []
  const made: Made[] = []
  let left = load.count ?? Number.POSITIVE_INFINITY
  const cpu = process.cpuUsage()
  const begun = performance.now()
  const until = load.seconds === undefined ? Number.POSITIVE_INFINITY : begun + load.seconds * 1000
  const change = async (load: Exclude<Load, { kind: 'get' }>, client: number) => {
    const start = performance.now()
    const promise = load.kind === 'create' ? await create(load, client) : await remove(load)
    accepted.push(performance.now() - start)
    made.push(promise)
    await succeeded(load, promise)
  }
  await Promise.all(
    Array.from({ length: load.clients }, async (_, client) => {
      while (left-- > 0 && performance.now() < until) {
        const start = performance.now()
        if (load.kind === 'get') await send(load, 'GET', load.paths[names++ % load.paths.length]!, load.token)
        else await change(load, client)
        latencies.push(performance.now() - start)
      }
    }),
  )
  const ms = performance.now() - begun
  const { user, system } = process.cpuUsage(cpu)
  for (const list of [latencies, accepted]) list.sort((one, other) => one - other)
  process.send!({
    count: latencies.length,
    perSecond: latencies.length / (ms / 1000),
    p50: percentile(latencies, 0.5),
    p99: percentile(latencies, 0.99),
    acceptedP50: percentile(accepted, 0.5),
    loadCores: (user + system) / 1000 / ms,
    made,
  } satisfies LoadResult)
})

async function create(load: Load & { kind: 'create' }, client: number): Promise<Made> {
  const { projectId, token } = load.tenants[client % load.tenants.length]!
  const name = `b-${process.pid}-${names++}`
  const body = { name, type: 'a100.1x', location: load.location, image: 'debian12', ssh_public_key: sshKey }
  const { operation } = await send(load, 'POST', `/v0.1/projects/${projectId}/vms`, token, body)
  return { projectId, token, vmId: operation.metadata.id, operationId: operation.operation_id }
}

async function remove(load: Load & { kind: 'delete' }): Promise<Made> {
  const { projectId, token, vmId } = load.vms.pop()!
  const { operation } = await send(load, 'DELETE', `/v0.1/projects/${projectId}/vms/${vmId}`, token)
  return { projectId, token, vmId, operationId: operation.operation_id }
}

async function succeeded(load: Load, { projectId, token, operationId }: Made): Promise<void> {
  const path = `/v0.1/projects/${projectId}/vms/operations/${operationId}?wait=30`
  const ended = await send(load, 'GET', path, token)
  if (ended.state !== 'SUCCEEDED') throw new Error(`${path} ended ${ended.state}: ${JSON.stringify(ended)}`)
}

// biome-ignore lint/suspicious/noExplicitAny: a measuring client trusts its service
function send({ url }: Load, method: string, path: string, token: string, body?: unknown): Promise<any> {
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
        else resolve(method === 'GET' && !path.includes('?wait=') ? undefined : JSON.parse(content))
      })
    })
    call.on('error', reject)
    call.end(text)
  })
}

import { connect } from 'node:net'
import { sshKey } from '@slipway/testing/ssh-key.ts'
import { percentile } from './figures.ts'
import type { ChangedVm, Load, LoadResult } from './load.ts'

let createdVms = 0

process.once('message', async (load: Load) => {
  const latencies: number[] = []
  const accepted: number[] = []
  const changedVms: ChangedVm[] = []
  let left = load.count ?? Number.POSITIVE_INFINITY
  const cpu = process.cpuUsage()
  const startedAt = performance.now()
  const until = load.seconds === undefined ? Number.POSITIVE_INFINITY : startedAt + load.seconds * 1000
  const change = async (send: Send, load: Exclude<Load, { kind: 'get' }>, client: number) => {
    const start = performance.now()
    const changed = load.kind === 'create' ? await create(send, load, client) : await remove(send, load)
    accepted.push(performance.now() - start)
    changedVms.push(changed)
    await waitForSuccess(send, changed)
  }
  await Promise.all(
    Array.from({ length: load.clients }, async (_, client) => {
      const send = connectTo(load.url)
      while (left-- > 0 && performance.now() < until) {
        const start = performance.now()
        if (load.kind === 'get')
          await send('GET', load.paths[Math.floor(Math.random() * load.paths.length)]!, load.token)
        else await change(send, load, client)
        latencies.push(performance.now() - start)
      }
    }),
  )
  const ms = performance.now() - startedAt
  const { user, system } = process.cpuUsage(cpu)
  for (const list of [latencies, accepted]) list.sort((one, other) => one - other)
  process.send!({
    count: latencies.length,
    perSecond: latencies.length / (ms / 1000),
    p50: percentile(latencies, 0.5),
    p99: percentile(latencies, 0.99),
    acceptedP50: percentile(accepted, 0.5),
    loadCores: (user + system) / 1000 / ms,
    changedVms,
  } satisfies LoadResult)
})

async function create(send: Send, load: Load & { kind: 'create' }, client: number): Promise<ChangedVm> {
  const { projectId, token } = load.tenants[client % load.tenants.length]!
  const name = `b-${process.pid}-${createdVms++}`
  const body = { name, type: 'a100.1x', location: load.location, image: 'debian12', ssh_public_key: sshKey }
  const { operation } = JSON.parse(await send('POST', `/v0.1/projects/${projectId}/vms`, token, body))
  return { projectId, token, vmId: operation.metadata.id, operationId: operation.operation_id }
}

async function remove(send: Send, load: Load & { kind: 'delete' }): Promise<ChangedVm> {
  const { projectId, token, vmId } = load.vms.pop()!
  const { operation } = JSON.parse(await send('DELETE', `/v0.1/projects/${projectId}/vms/${vmId}`, token))
  return { projectId, token, vmId, operationId: operation.operation_id }
}

async function waitForSuccess(send: Send, { projectId, token, operationId }: ChangedVm): Promise<void> {
  const path = `/v0.1/projects/${projectId}/vms/operations/${operationId}?wait=30`
  const ended = JSON.parse(await send('GET', path, token))
  if (ended.state !== 'SUCCEEDED')
    throw new Error(`${path} ended with ${ended.state}: ${JSON.stringify(ended)}`)
}

type Send = (method: string, path: string, token: string, body?: unknown) => Promise<string>

/**
 * Opens a client's connection. Returns a function that sends a request and returns the response body. Node's
 * own client takes a millisecond for each request, which would distort the measurement.
 */
function connectTo(url: string): Send {
  const { hostname, port, host } = new URL(url)
  const socket = connect({ host: hostname, port: Number(port), noDelay: true })
  let received: Buffer = Buffer.alloc(0)
  let pending: { what: string; resolve: (body: string) => void; reject: (error: Error) => void } | undefined
  const rejectPending = (error = new Error('the service closed a connection')) => pending?.reject(error)
  socket.on('error', rejectPending).on('close', () => rejectPending())
  socket.on('data', (chunk: Buffer) => {
    received = received.length === 0 ? chunk : Buffer.concat([received, chunk])
    const headEnd = received.indexOf('\r\n\r\n')
    if (headEnd < 0 || !pending) return
    const head = received.toString('latin1', 0, headEnd)
    const end = headEnd + 4 + Number(/^content-length: (\d+)$/im.exec(head)![1])
    if (received.length < end) return
    const body = received.toString('utf8', headEnd + 4, end)
    received = received.subarray(end)
    const { what, resolve, reject } = pending
    pending = undefined
    if (head.startsWith('HTTP/1.1 200 ')) resolve(body)
    else reject(new Error(`${what} returned ${head.slice(9, 12)}: ${body}`))
  })
  return (method, path, token, body) =>
    new Promise((resolve, reject) => {
      pending = { what: `${method} ${path}`, resolve, reject }
      const text = body === undefined ? '' : JSON.stringify(body)
      const content =
        text && `content-type: application/json\r\ncontent-length: ${Buffer.byteLength(text)}\r\n`
      const head = `${method} ${path} HTTP/1.1\r\nhost: ${host}\r\nauthorization: Bearer ${token}\r\n${content}\r\n`
      socket.write(head + text)
    })
}

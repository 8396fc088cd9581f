/**
 * Does the least that any service on this stack must do, in a separate process. For reads, it checks a bearer
 * token, runs at most one SELECT and sends the same bytes as the service. For writes, it repeats the smallest
 * durable change.
 */
import fastify from 'fastify'
import pg from 'pg'
import { hashSecret } from '../src/domain/secret.ts'
import { Database } from '../src/postgres/database.ts'
import { statement } from '../src/postgres/statement.ts'
import type { BareTask } from './limits.ts'

const jsonOfVm = 'SELECT to_json(v)::text AS json FROM vms v WHERE id = $1'
const jsonOfPage = `SELECT json_agg(v)::text AS json
   FROM (SELECT * FROM vms WHERE project_id = $1 ORDER BY id DESC LIMIT 100) v`
const insertRow = statement<never, { n: number }>('bare_insert', 'INSERT INTO bench_rows (n) VALUES (:n)')

process.once('message', async (task: BareTask) => {
  if (task.kind === 'routes') process.send!(await serve(task))
  else process.send!(await write(task))
})

async function serve({ databaseUrl, token, vmIds, projectId, responses }: BareTask & { kind: 'routes' }) {
  // Uses the driver directly, without the service's own layer, so that optimizations of the service do not
  // change the baselines that it is compared with.
  const pool = new pg.Pool({ connectionString: databaseUrl, max: 4 })
  const app = fastify()
  const known = new Map([[hashSecret(token).toString('base64'), true]])
  const anyVm = () => vmIds[Math.floor(Math.random() * vmIds.length)]
  const queries: Record<string, () => Promise<unknown>> = {
    bare: async () => {},
    row: () => pool.query({ name: 'row', text: 'SELECT * FROM vms WHERE id = $1', values: [anyVm()] }),
    json: () => pool.query({ name: 'json', text: jsonOfVm, values: [anyVm()] }),
    page: () => pool.query({ name: 'page', text: jsonOfPage, values: [projectId] }),
  }
  for (const [name, { headers, body }] of Object.entries(responses))
    for (const [kind, work] of Object.entries(queries))
      app.get(`/${name}/${kind}`, async (request, reply) => {
        const bearer = request.headers.authorization?.slice(7) ?? ''
        if (!known.has(hashSecret(bearer).toString('base64'))) return reply.code(401).send()
        if (kind !== 'bare') await work()
        return reply.headers(headers).send(body)
      })
  return app.listen({ port: 0, host: '127.0.0.1' })
}

/** Returns the number of changes per second. */
async function write({ databaseUrl, connections, seconds, kind }: Exclude<BareTask, { kind: 'routes' }>) {
  const database = new Database({ url: databaseUrl, poolSize: connections })
  const change = (n: number) =>
    kind === 'transactions'
      ? database.transaction((tx) => insertRow.run(tx, { n }))
      : insertRow.run(database, { n })
  const until = performance.now() + seconds * 1000
  let count = 0
  await Promise.all(
    Array.from({ length: connections }, async () => {
      while (performance.now() < until) await change(count++)
    }),
  )
  return count / seconds
}

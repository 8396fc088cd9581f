/**
 * What any service on this stack must at least do, in a process of its own: check a bearer, maybe one SELECT, send the
 * same bytes; or make the smallest durable change, over and over.
 */
import fastify from 'fastify'
import { hashSecret } from '../src/domain/secret.ts'
import { Database } from '../src/store/database.ts'
import { statement } from '../src/store/statement.ts'
import type { BareTask } from './limits.ts'

const selectVm = statement<{ id: string }, { id: string }>('bare_row', 'SELECT * FROM vms WHERE id = :id')
const selectJson = statement<{ json: string }, { id: string }>(
  'bare_json',
  'SELECT to_json(v)::text AS json FROM vms v WHERE id = :id',
)
const selectPage = statement<{ json: string }, { projectId: string }>(
  'bare_page',
  `SELECT json_agg(v)::text AS json
   FROM (SELECT * FROM vms WHERE project_id = :projectId ORDER BY id DESC LIMIT 100) v`,
)
const insertRow = statement<never, { n: number }>('bare_insert', 'INSERT INTO bench_rows (n) VALUES (:n)')

process.once('message', async (task: BareTask) => {
  if (task.kind === 'routes') process.send!(await serve(task))
  else process.send!(await write(task))
})

async function serve({ databaseUrl, token, vmId, projectId, answers }: BareTask & { kind: 'routes' }) {
  const database = new Database({ url: databaseUrl, poolSize: 4 })
  const app = fastify()
  const known = new Map([[hashSecret(token).toString('base64'), true]])
  const ask: Record<string, () => Promise<unknown>> = {
    bare: async () => {},
    row: () => selectVm.one(database, { id: vmId }),
    json: () => selectJson.one(database, { id: vmId }),
    page: () => selectPage.one(database, { projectId }),
  }
  for (const [name, { headers, body }] of Object.entries(answers))
    for (const [kind, work] of Object.entries(ask))
      app.get(`/${name}/${kind}`, async (request, reply) => {
        const bearer = request.headers.authorization?.slice(7) ?? ''
        if (!known.has(hashSecret(bearer).toString('base64'))) return reply.code(401).send()
        if (kind !== 'bare') await work()
        return reply.headers(headers).send(body)
      })
  return app.listen({ port: 0, host: '127.0.0.1' })
}

/** How many a second. */
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

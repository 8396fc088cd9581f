import { eventually } from '@slipway/testing/eventually.ts'
import { checkInvariants, settle } from '@slipway/testing/invariants.ts'
import { addOrganization, addProject, setPayment, tokenOfNew } from '@slipway/testing/people.ts'
import { freshName, resourcesOf, vmBody } from '@slipway/testing/resources.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'

/** Requests of different tenants share a transaction. None is refused, delayed or lost because of another request. */

let service: TestService
let resources: ReturnType<typeof resourcesOf>
beforeAll(async () => {
  service = await startService((config) => {
    config.locations = config.locations.slice(0, 1)
    const [location] = config.locations
    if (location!.engine === 'simulated')
      location!.simulated.hosts = [
        { count: 8, model: 'A100 40GB PCIe', gpus: 8 },
        { count: 1, model: 'A40 48GB PCIe', gpus: 1 },
      ]
  })
  resources = resourcesOf(service)
})
afterAll(() => service?.close())
afterEach(async () => {
  await eventually(async () => (await service.sql('SELECT FROM operation_queue')).length === 0)
  await settle(service)
  await checkInvariants(service)
})

interface Tenant {
  project_id: string
  organization_id: string
  token: string
}

async function addTenant(): Promise<Tenant> {
  const organization_id = await addOrganization(service.database, freshName('org'))
  const token = await tokenOfNew(service.database, { memberOf: { [organization_id]: 'owner' } })
  const project_id = await addProject(service, token, organization_id, freshName('project'))
  return { project_id, organization_id, token }
}

const create = async ({ project_id, token }: Tenant, changes: Record<string, unknown> = {}) => {
  const { status, body } = await service.call('vmCreate', {
    params: { project_id },
    token,
    body: vmBody(changes),
    headers: { 'idempotency-key': freshName('key') },
  })
  return status === 200 ? 'admitted' : (body as unknown as { code: string }).code
}

/**
 * Sends the requests while the creation of another tenant is in progress, so that they form a batch, and runs
 * `meanwhile` before that creation ends.
 */
async function runBatch<T>(requests: () => Promise<T>[], meanwhile = async () => {}): Promise<T[]> {
  const first = await addTenant()
  const isReached = (text: string) =>
    service.sql<{ n: number }>(`SELECT count(*)::int AS n FROM pg_stat_activity WHERE ${text}`)
  return service.database
    .transaction(async (tx) => {
      await tx.query({
        text: 'SELECT FROM quotas WHERE project_id = $1 FOR UPDATE',
        values: [first.project_id],
      })
      const held = create(first)
      while ((await isReached(`wait_event_type = 'Lock' AND datname = current_database()`))[0]!.n === 0);
      const responses = requests()
      await meanwhile()
      return { held, responses }
    })
    .then(async ({ held, responses }) => {
      expect(await held).toBe('admitted')
      return Promise.all(responses)
    })
}

const demo = (): Tenant => ({ ...service.credentials, token: service.credentials.access_key })

test('the last GPU goes to a request within its quota, even if other requests of the batch exceed theirs', async () => {
  const [poor, good] = [await addTenant(), await addTenant()]
  await service.ok('adminQuotaSet', {
    token: service.credentials.operator_key,
    body: { project_id: poor.project_id, items: [{ name: 'a40_gpus', max: 0 }] },
  })
  const type = 'a40.1x'
  const refused = () => create(poor, { type })
  const responses = await runBatch(() => [refused(), refused(), create(good, { type }), refused(), refused()])
  expect(responses.map((response) => response === 'admitted')).toEqual([false, false, true, false, false])
  const params = { project_id: good.project_id }
  const [vm] = (await service.ok('vmList', { token: good.token, params })).items
  await service.ok('vmDelete', { token: good.token, params: { ...params, vm_id: vm!.id } })
})

test('concurrent creations are each refused for their own reason, and the others are admitted', async () => {
  const [good, poor, broke] = [await addTenant(), await addTenant(), await addTenant()]
  const operator = service.credentials.operator_key
  await service.ok('adminQuotaSet', {
    token: operator,
    body: { project_id: poor.project_id, items: [{ name: 'a100_gpus', max: 2 }] },
  })
  await service.ok('budgetSet', {
    token: broke.token,
    params: { project_id: broke.project_id },
    body: { monthly_usd: 0.01, hard_stop: true },
  })
  await service.sql(
    `INSERT INTO project_spending (project_id, at, spent_usd_ms) VALUES ($1, slipway_now(), 3600000)
     ON CONFLICT (project_id) DO UPDATE SET spent_usd_ms = 3600000, at = slipway_now()`,
    [broke.project_id],
  )
  const name = freshName('taken')
  const disk_id = await resources.newDisk()
  await resources.newVm({ name, disks: [{ disk_id, mode: 'read-write' }] })
  await resources.newVm({ type: 'a40.1x' })

  const responses = await runBatch(() => [
    create(good),
    create(poor, { type: 'a100.4x' }),
    create(demo(), { name }),
    create(good),
    create(demo(), { type: 'a40.1x' }),
    create(demo(), { disks: [{ disk_id, mode: 'read-write' }] }),
    create(broke),
    create(good, { type: 'a100.2x' }),
    create(good, { image: 'no-such-image' }),
    create(good, { subnet_id: disk_id }),
    create(demo(), { disks: [{ disk_id: good.project_id, mode: 'read-only' }] }),
    create(poor),
    create(poor),
    create(poor),
  ])
  // The order of concurrent requests from one caller is not defined.
  expect([...responses.slice(0, -3), ...responses.slice(-3).sort()]).toEqual([
    'admitted',
    'quota_exceeded',
    'already_exists',
    'admitted',
    'out_of_stock',
    'conflict',
    'quota_exceeded',
    'admitted',
    'invalid_argument',
    'invalid_argument',
    'not_found',
    'admitted',
    'admitted',
    'quota_exceeded',
  ])
  const rows = await service.sql<{ vms: number; operations: number; kept: number }>(
    `SELECT (SELECT count(*)::int FROM vms WHERE project_id = ANY ($1)) AS vms,
            (SELECT count(*)::int FROM operations WHERE project_id = ANY ($1)) AS operations,
            (SELECT count(*)::int FROM gpus WHERE vm_id IS NOT NULL AND vm_id NOT IN (SELECT id FROM vms)) AS kept`,
    [[good.project_id, poor.project_id, broke.project_id]],
  )
  expect(rows).toEqual([{ vms: 5, operations: 5, kept: 0 }])
})

test('a caller who loses access while a batch forms is refused, and the other requests are admitted', async () => {
  const [good, suspended, unpaid, revoked] = [
    await addTenant(),
    await addTenant(),
    await addTenant(),
    await addTenant(),
  ]
  const key = await service.ok('accessKeyCreate', {
    token: revoked.token,
    params: { project_id: revoked.project_id },
    body: { name: 'ci', role: 'write' },
  })
  const responses = await runBatch(
    () => [
      create(good),
      create(suspended),
      create(unpaid),
      create({ ...revoked, token: key.secret }),
      create(good),
    ],
    async () => {
      // Each request has passed its first check when it joins the batch.
      const arrived = () =>
        service.sql<{ n: number }>(
          `SELECT count(*)::int AS n FROM access_keys WHERE last_used_at IS NOT NULL AND id = $1`,
          [key.id],
        )
      while ((await arrived())[0]!.n === 0);
      await service.sql('UPDATE organizations SET suspended_at = slipway_now() WHERE id = $1', [
        suspended.organization_id,
      ])
      await setPayment(service.database, unpaid.organization_id, 'declined')
      await service.sql('UPDATE access_keys SET revoked_at = slipway_now() WHERE id = $1', [key.id])
    },
  )
  expect(responses).toEqual([
    'admitted',
    'suspended',
    'payment_method_required',
    'unauthenticated',
    'admitted',
  ])
})

test('concurrent deletions have independent results, including those of VMs that do not exist', async () => {
  const [one, two] = [await addTenant(), await addTenant()]
  const createFor = async ({ project_id, token }: Tenant) =>
    (await service.ok('vmCreate', { params: { project_id }, token, body: vmBody() })).operation.metadata.id
  const [first, second] = [await createFor(one), await createFor(two)]
  const remove = async ({ project_id, token }: Tenant, vm_id: string) => {
    const { status, body } = await service.call('vmDelete', { params: { project_id, vm_id }, token })
    return status === 200 ? body.operation.operation_id : (body as unknown as { code: string }).code
  }
  // No deletion can finish before the last one has arrived.
  await service.simulator().addFault({ method: 'removeVm', kind: 'fail', times: 1000 })
  const responses = await Promise.all([
    remove(one, first),
    remove(one, second),
    remove(two, second),
    remove(one, first),
    remove(two, first),
    remove(two, one.project_id),
  ])
  await service.simulator().clearFaults()
  expect(responses.map((response) => response.length === 36)).toEqual([true, false, true, true, false, false])
  expect(responses[0]).toBe(responses[3])
  expect(responses.filter((response) => response === 'not_found')).toHaveLength(3)
})

import { eventually } from '@slipway/testing/eventually.ts'
import { gpuReport, hostReport, reportHost } from '@slipway/testing/fleet.ts'
import { addOrganization, addProject, ownerToken, tokenOfNew } from '@slipway/testing/people.ts'
import { resourcesOf, vmBody } from '@slipway/testing/resources.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { setPaymentState } from '../../src/store/billing/payments.ts'
import { groupBody } from '../support/fleets/small-fleet.ts'

let service: TestService
let resources: ReturnType<typeof resourcesOf>
let owner: string
beforeAll(async () => {
  service = await startService()
  resources = resourcesOf(service)
  owner = await ownerToken(service)
})
afterAll(() => service.close())

const ofProject = async () => (await service.ok('alertList')).items
const ofOrganization = async () => (await service.ok('organizationAlertList', { token: owner })).items
const ofOperator = async () =>
  (await service.ok('adminAlertList', { token: service.credentials.operator_key })).items
const until = (vmId: string, state: string) =>
  eventually(async () => {
    await service.server.reconciler.reports()
    return (await resources.stateOf(vmId)) === state
  })
const now = async () =>
  (await service.sql<{ now: Date }>('SELECT slipway_now() AS now'))[0]!.now.toISOString()

test('there are no alerts while everything works', async () => {
  await resources.newVm()
  expect([await ofProject(), await ofOrganization(), await ofOperator()]).toEqual([[], [], []])
})

test('a crashed VM raises an alert from the time of the crash until it runs again', async () => {
  const id = await resources.newVm({ name: 'train-7' })
  const before = await now()
  await service.simulator().crashVm(id)
  await until(id, 'STATE_CRASHED')
  const [alert] = await ofProject()
  expect(alert).toMatchObject({
    kind: 'crashed',
    resource_type: 'vm',
    resource_id: id,
    name: 'train-7',
    project_id: service.credentials.project_id,
    message: expect.stringContaining('train-7 crashed'),
  })
  expect(alert!.since >= before && alert!.since <= (await now())).toBe(true)
  expect(await ofOrganization()).toEqual([alert])
  await resources.succeeded(await resources.act(id, { action: 'RESET' }))
  expect(await ofProject()).toEqual([])
})

test('a lost host raises an alert for operators, and its VMs raise alerts for their tenants', async () => {
  const id = await resources.newVm()
  const [host] = await service.sql<{ id: string; name: string }>(
    'SELECT h.id, h.name FROM vms v JOIN hosts h ON h.id = v.host_id WHERE v.id = $1',
    [id],
  )
  await service.simulator().setHostLost(host!.name, true)
  await service.clock.advance('31 seconds')
  await until(id, 'STATE_UNREACHABLE')
  expect(await ofProject()).toContainEqual(expect.objectContaining({ kind: 'unreachable', resource_id: id }))
  expect(await ofOperator()).toEqual([
    expect.objectContaining({
      kind: 'host_lost',
      resource_type: 'host',
      resource_id: host!.id,
      name: host!.name,
      since: expect.stringMatching(/Z$/),
    }),
  ])
  await service.simulator().setHostLost(host!.name, false)
  await until(id, 'STATE_RUNNING')
  expect([await ofProject(), await ofOperator()]).toEqual([[], []])
})

test('a deletion that keeps failing raises an alert with the name of its VM', async () => {
  const id = await resources.newVm({ name: 'clinging' })
  await service.simulator().addFault({ method: 'removeVm', resourceId: id, kind: 'fail', times: 1000 })
  const { operation } = await resources.removeVm(id)
  await eventually(async () => {
    const rows = await service.sql(
      `WITH parked AS (
         UPDATE operation_queue SET run_at = slipway_now() + interval '5 minutes' FROM operations
         WHERE operation_id = $1 AND id = $1 AND attempts > 0 AND lease_token IS NULL RETURNING operation_id)
       UPDATE operations SET attempts = 21 FROM parked WHERE id = operation_id RETURNING id`,
      [operation.operation_id],
    )
    return rows.length === 1
  })
  const stuck = {
    kind: 'stuck',
    resource_type: 'vm',
    resource_id: id,
    name: 'clinging',
    message: expect.stringMatching(
      /^Deleting the VM clinging failed 21 times and is being retried\. The operator has been notified/,
    ),
  }
  expect(await ofProject()).toEqual([expect.objectContaining(stuck)])
  expect(await ofOperator()).toEqual([expect.objectContaining(stuck)])
  await service.simulator().clearFaults()
  await service.clock.advance('6 minutes')
  service.server.services.signals.send('operations')
  await service.ended(operation.operation_id)
  expect([await ofProject(), await ofOperator()]).toEqual([[], []])
})

test('a VM that is about to expire raises an alert until its TTL is extended', async () => {
  const vm_id = await resources.newVm({ name: 'short', ttl_seconds: 300, on_expiry: 'delete' })
  await service.server.reconciler.expiry()
  const { expires_at } = await service.ok('vmGet', { params: { vm_id } })
  expect(await ofProject()).toEqual([
    expect.objectContaining({
      kind: 'expiring',
      resource_id: vm_id,
      message: expect.stringContaining(`short will be deleted at ${expires_at}`),
    }),
  ])
  await resources.succeeded(await resources.act(vm_id, { ttl_seconds: 864_000 }))
  expect(await ofProject()).toEqual([])
})

test('a budget that is nearly spent raises an alert in its project', async () => {
  const { project_id } = service.credentials
  await service.ok('budgetSet', { token: owner, body: { monthly_usd: 10, hard_stop: true } })
  expect(await ofProject()).toEqual([])
  await service.sql(
    'UPDATE project_spending SET spent_usd_ms = 8.5 * 3600000, at = slipway_now() WHERE project_id = $1',
    [project_id],
  )
  const [alert] = await ofProject()
  expect(alert).toMatchObject({ kind: 'budget', resource_type: 'project', resource_id: project_id })
  expect(alert!.message).toMatch(
    /^Project ".+" is at \d+% of its monthly budget of 10 USD\. .*nothing new can be created/,
  )
  await service.ok('budgetSet', { token: owner, body: { monthly_usd: null } })
  expect(await ofProject()).toEqual([])
})

test('a declined card and a due invoice raise alerts for the tenant and for operators', async () => {
  const organization_id = await addOrganization(service.database, 'Harbour Labs')
  const token = await tokenOfNew(service.database, { memberOf: { [organization_id]: 'owner' } })
  const project_id = await addProject(service, token, organization_id, 'first')
  await service.database.transaction((tx) => setPaymentState(tx, organization_id, 'declined'))
  await service.sql(
    `INSERT INTO invoices (id, organization_id, month, state, usd_cents)
     VALUES (gen_random_uuid(), $1, '2026-10-01', 'issued', 12345)`,
    [organization_id],
  )
  const expected = [
    expect.objectContaining({
      resource_type: 'invoice',
      message: expect.stringMatching(/for October 2026, 123.45 USD/),
    }),
    expect.objectContaining({
      resource_type: 'organization',
      message: expect.stringMatching(/was declined/),
    }),
  ]
  const sorted = (items: { resource_type: string }[]) =>
    items.toSorted((a, b) => a.resource_type.localeCompare(b.resource_type))
  const own = { token, params: { organization_id, project_id } }
  expect(sorted((await service.ok('organizationAlertList', own)).items)).toEqual(expected)
  expect(sorted((await service.ok('alertList', own)).items)).toEqual(expected)
  expect(sorted(await ofOperator())).toEqual(expected)
  expect(await ofOrganization()).toEqual([])
  await service.sql(`UPDATE invoices SET state = 'paid', paid_at = slipway_now()`)
  await service.database.transaction((tx) => setPaymentState(tx, organization_id, 'active'))
  expect(await ofOperator()).toEqual([])
})

test('a failed VM creation raises an alert with its reason for a day, or until it is repeated', async () => {
  const fail = async (name: string) => {
    await service.simulator().addFault({ method: 'ensureVm', kind: 'reject' })
    const { operation } = await service.ok('vmCreate', { body: vmBody({ name }) })
    expect(await service.ended(operation.operation_id)).toMatchObject({ state: 'FAILED' })
    return operation.metadata.id
  }
  const repeated = await fail('repeated')
  const late = await fail('late')
  const alertOf = (resource_id: string, name: string) =>
    expect.objectContaining({
      kind: 'creation_failed',
      resource_type: 'vm',
      resource_id,
      name,
      message: expect.stringMatching(
        new RegExp(`^${name} could not be created: .+\\. Nothing was kept, and nothing is billed`),
      ),
    })
  expect(await ofProject()).toEqual([alertOf(late, 'late'), alertOf(repeated, 'repeated')])
  const search = { token: owner, query: { q: 'repeated' } }
  expect((await service.ok('organizationSearch', search)).items).toEqual([
    expect.objectContaining({ resource_type: 'vm', resource_id: repeated, state: 'FAILED' }),
  ])
  await resources.newVm({ name: 'repeated' })
  expect(await ofOrganization()).toEqual([alertOf(late, 'late')])
  await service.clock.advance('25 hours')
  // The hosts have not reported for 25 hours, which may raise another alert.
  const kinds = (await ofProject()).map(({ kind }) => kind)
  expect(kinds).not.toContain('creation_failed')
  // The sign-in of the owner has expired.
  owner = await ownerToken(service)
  const after = await service.ok('organizationSearch', { token: owner, query: { q: 'late' } })
  expect(after.items).toEqual([])
})

test('announced maintenance notifies the tenants 7 days, 24 hours and 1 hour ahead, once each', async () => {
  const id = await resources.newVm({ name: 'guest', labels: { team: 'ml' } })
  const token = service.credentials.operator_key
  const [host] = await service.sql<{ id: string }>('SELECT host_id AS id FROM vms WHERE id = $1', [id])
  const params = { host_id: host!.id }
  const notices = async (type = 'vm.maintenance_scheduled') => {
    for (let run = 0; run < 2; run++) await service.server.reconciler.once()
    const rows = await service.sql<{ data: object }>(
      'SELECT data FROM events_written WHERE type = $1 AND resource_id = $2',
      [type, id],
    )
    return rows.map(({ data }) => data)
  }
  const [{ at }] = (await service.sql(`SELECT slipway_now() + interval '8 days' AS at`)) as [{ at: Date }]
  const past = await service.call('adminHostMaintenanceSet', {
    token,
    params,
    body: { at: '2020-01-01T00:00:00Z' },
  })
  expect(past).toMatchObject({ status: 400, body: { details: [{ field: '/at' }] } })
  const body = { at: at.toISOString(), note: 'New power supplies' }
  const scheduled = await service.ok('adminHostMaintenanceSet', { token, params, body })
  expect(scheduled).toMatchObject({ maintenance_at: body.at, maintenance_note: body.note })
  const alert = (await ofProject()).find(({ resource_id }) => resource_id === id)
  expect(alert).toMatchObject({
    kind: 'maintenance',
    name: 'guest',
    message: expect.stringMatching(
      new RegExp(
        `^The host of guest in .+ is scheduled for maintenance at ${body.at.slice(0, 16).replace('T', ' ')} UTC \\(New power supplies\\)\\. `,
      ),
    ),
  })
  expect(await notices()).toHaveLength(0)
  for (const [index, wait] of ['1 day 1 minute', '6 days', '23 hours'].entries()) {
    await service.clock.advance(wait)
    expect(await notices(), wait).toHaveLength(index + 1)
  }
  const { location } = await service.ok('vmGet', { params: { vm_id: id } })
  expect((await notices())[0]).toEqual({
    name: 'guest',
    labels: { team: 'ml' },
    location,
    maintenance_at: body.at,
    note: body.note,
  })
  const cancelled = await service.ok('adminHostMaintenanceDelete', { token, params })
  expect((await service.call('adminHostMaintenanceDelete', { token, params })).status).toBe(404)
  expect(cancelled).toMatchObject({ maintenance_at: '', maintenance_note: '' })
  expect(await notices('vm.maintenance_cancelled')).toHaveLength(1)
  expect((await ofProject()).filter(({ resource_id }) => resource_id === id)).toEqual([])
})

test('a draining host raises an alert and an event for each VM that uses it, worded for the tenant', async () => {
  const id = await resources.newVm({ name: 'must-leave' })
  const token = service.credentials.operator_key
  const [host] = await service.sql<{ id: string }>('SELECT host_id AS id FROM vms WHERE id = $1', [id])
  const params = { host_id: host!.id }
  await service.ok('adminHostDrain', { token, params })
  const alerts = (await ofProject()).filter(({ resource_id }) => resource_id === id)
  expect(alerts).toEqual([
    expect.objectContaining({
      kind: 'draining',
      message: expect.stringMatching(
        /^The host of must-leave in \S+ will be taken out of service\. must-leave keeps running\. Stop and start it/,
      ),
    }),
  ])
  const events = await service.ok('eventList', { query: { resource_id: id, type: 'vm.host_draining' } })
  expect(events.items).toEqual([
    expect.objectContaining({ data: expect.objectContaining({ name: 'must-leave' }) }),
  ])
  const reopened = await service.ok('adminHostUpdate', {
    token,
    params,
    body: { schedulable: true, note: 'Fan is loud' },
  })
  expect(reopened).toMatchObject({
    state: 'up',
    note: 'Fan is loud',
    note_at: expect.stringMatching(/Z$/),
    note_by: expect.stringMatching(/^operator_key:/),
  })
  const cleared = await service.ok('adminHostUpdate', { token, params, body: { note: '' } })
  expect(cleared).toMatchObject({ note: '', note_at: '', note_by: '' })
  expect((await ofProject()).filter(({ resource_id }) => resource_id === id)).toEqual([])
})

test('a GPU that disappeared, or that waits too long for its reset, raises an alert for operators', async () => {
  const report = (gpus: number[]) =>
    reportHost(
      service.database,
      'eu-north1-a',
      hostReport(
        'odd-1',
        gpus.map((index) => gpuReport(index)),
      ),
    )
  await report([0, 1])
  await report([0])
  await service.sql(
    `UPDATE gpus SET state = 'quarantined', quarantined_at = slipway_now() - interval '20 minutes'
     WHERE state = 'free' AND host_id = (SELECT id FROM hosts WHERE name = 'odd-1')`,
  )
  const faults = (await ofOperator()).filter(({ kind }) => kind === 'gpu_fault')
  expect(faults.map(({ name, message }) => [name, message])).toEqual([
    ['odd-1 0000:00:00.0', expect.stringMatching(/waiting for its reset/)],
    ['odd-1 0000:01:00.0', expect.stringMatching(/is missing from/)],
  ])
})

test('a webhook that keeps failing raises an alert until it is paused', async () => {
  // Other tests move the clock, which ends sessions.
  const token = await ownerToken(service)
  const body = { url: 'https://hooks.example.com:8443/slipway/secret-token' }
  const { id: webhook_id } = await service.ok('webhookCreate', { token, body })
  const failSince = (ago: string) =>
    service.sql(`UPDATE webhooks SET fails_since = slipway_now() - $2::interval WHERE id = $1`, [
      webhook_id,
      ago,
    ])
  await failSince('5 minutes')
  expect(await ofProject()).toEqual([])
  await failSince('1 hour')
  const [alert] = await ofProject()
  expect(alert).toMatchObject({
    kind: 'webhook_failing',
    resource_id: webhook_id,
    name: 'hooks.example.com:8443',
    message: expect.stringMatching(
      /^Deliveries to the webhook at hooks\.example\.com:8443 have failed since/,
    ),
  })
  expect(JSON.stringify(alert)).not.toContain('secret')
  await service.ok('webhookUpdate', { token, params: { webhook_id }, body: { state: 'paused' } })
  expect(await ofProject()).toEqual([])
  await service.ok('webhookDelete', { token, params: { webhook_id } })
})

test('a group that cannot be created raises one alert, until it is created', async () => {
  const body = groupBody(2)
  await service.simulator().addFault({ method: 'ensureVm', kind: 'reject', times: 1_000 })
  const failed = await service.ok('instanceGroupCreate', { body })
  expect(await service.advanceUntilEnded(failed.operation.operation_id)).toMatchObject({ state: 'FAILED' })
  expect(await ofProject()).toEqual([
    expect.objectContaining({
      kind: 'creation_failed',
      resource_type: 'instance_group',
      resource_id: failed.operation.metadata.id,
      name: body.name,
    }),
  ])
  await service.simulator().clearFaults()
  const { operation } = await service.ok('instanceGroupCreate', { body })
  await service.advanceUntilEnded(operation.operation_id)
  expect(await ofProject()).toEqual([])
  const params = { instance_group_id: operation.metadata.id }
  const removal = await service.ok('instanceGroupDelete', { params })
  await service.advanceUntilEnded(removal.operation.operation_id)
})

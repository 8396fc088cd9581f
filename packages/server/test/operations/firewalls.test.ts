import { eventually } from '@slipway/testing/eventually.ts'
import { checkInvariants, settle } from '@slipway/testing/invariants.ts'
import { freshName, resourcesOf, vmBody } from '@slipway/testing/resources.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { setUpProject } from '../../src/accounts/project-setup.ts'
import { holdCalls } from '../support/held-calls.ts'
import { addVmRows, removeVmRows } from '../support/vm-rows.ts'

let service: TestService
let resources: ReturnType<typeof resourcesOf>
let pools: { name: string; public_ipv4: string }[]

beforeAll(async () => {
  service = await startService()
  resources = resourcesOf(service)
  pools = await service.sql('SELECT name, public_ipv4::text FROM locations')
  await settle(service)
})
afterAll(() => service.close())
afterEach(async () => {
  for (const { name, public_ipv4 } of pools)
    await service.sql('UPDATE locations SET public_ipv4 = $2 WHERE name = $1', [name, public_ipv4])
  await removeVmRows(service)
  await resources.clear()
  for (const { id, name } of (await service.ok('firewallRuleList')).items)
    if (!name.startsWith('allow-')) await resources.succeeded(await resources.removeRule(id))
  await settle(service)
  await checkInvariants(service)
})

const packet = { direction: 'ingress', protocol: 'tcp', peer: '203.0.113.7', destinationPort: 8888 } as const
const passes = (vmId: string, changes: object = {}) =>
  service.simulator().wouldPass(vmId, { ...packet, ...changes })
const failFirewallOf = (resourceId: string) =>
  service.simulator().addFault({ method: 'applyFirewall', kind: 'fail', resourceId, times: 10_000 })
const addressOf = async (vm_id: string) =>
  (await service.ok('vmGet', { params: { vm_id } })).network_interfaces[0]!.ips[0]!.public_ipv4.address
const hostOf = async (vmId: string) =>
  (
    await service.sql<{ id: string; name: string; state: string }>(
      'SELECT h.id, h.name, h.state FROM vms v JOIN hosts h ON h.id = v.host_id WHERE v.id = $1',
      [vmId],
    )
  )[0]!
const isBehind = async (vmId: string) =>
  (await service.sql('SELECT FROM vms WHERE id = $1 AND firewall_applied < firewall_wanted', [vmId])).length >
  0
const requestFirewallUpdate = (vmId: string) =>
  service.sql('UPDATE vms SET firewall_wanted = firewall_wanted + 1 WHERE id = $1', [vmId])

/** Advances the clock past every retry delay, and reconciles again. */
const catchUp = async () => {
  await service.clock.advance('2 minutes')
  await service.server.reconciler.once()
}
const newProject = async () =>
  (
    await service.database.transaction((tx) =>
      setUpProject(tx, {
        organizationId: service.credentials.organization_id,
        name: freshName('project'),
      }),
    )
  ).id

describe('firewalls that cannot be updated', () => {
  test('many VMs that no longer exist at their engine do not delay a rule for other VMs', async () => {
    const { project_id: projectId } = service.credentials
    await addVmRows(service, { projectId, count: 150, isAtEngine: false })
    const healthy = await resources.newVm()
    await resources.newRule()
    expect(await passes(healthy)).toBe(true)
  })

  test('VMs that cannot be updated move to the back of the queue', async () => {
    const failing = await addVmRows(service, { projectId: await newProject(), count: 150 })
    for (const id of failing) await failFirewallOf(id)
    const peer = await resources.newVm({ public_ip: 'none' })
    const named = await resources.newVm()
    const address = await addressOf(named)
    await resources.newRule({ sources: [{ resource_id: named }] })
    expect(await passes(peer, { peer: address })).toBe(true)
    for (const id of failing) await requestFirewallUpdate(id)
    await resources.succeeded(await resources.removeVm(named))
    // A pass of the reconciler ends after some time, even if VMs are left.
    await eventually(async () => {
      await service.server.reconciler.firewalls()
      return !(await passes(peer, { peer: address }))
    })
    const waiting = await service.sql<{ count: number }>(
      `SELECT FROM vms WHERE id = ANY ($1) AND firewall_attempts > 0 AND firewall_next_at > '-infinity'`,
      [failing],
    )
    expect(waiting).toHaveLength(150)
  })

  test('an engine that hangs for one tenant delays no other tenant', async () => {
    const [hung] = await addVmRows(service, { projectId: await newProject(), count: 1 })
    const vm = await resources.newVm()
    const { called, release } = holdCalls(service.simulator(), 'applyFirewall', hung!)
    await requestFirewallUpdate(hung!)
    await called
    await requestFirewallUpdate(vm)
    await eventually(async () => !(await isBehind(vm)))
    expect(await isBehind(hung!)).toBe(true)
    release()
    await eventually(async () => !(await isBehind(hung!)))
  })

  test('a location whose engine hangs does not delay a rule in other locations of the network', async () => {
    const far = await resources.newVm({ location: 'eu-north1-a' })
    const near = await resources.newVm()
    const { called, release } = holdCalls(service.simulator('eu-north1-a'), 'applyFirewall', far)
    const accepted = await resources.createRule()
    await called
    await eventually(() => passes(near))
    const params = { operation_id: accepted.operation.operation_id }
    expect((await service.ok('operationGet', { params })).state).toBe('IN_PROGRESS')
    release()
    await resources.succeeded(accepted)
  })

  test('an active rule of a large network is applied on every VM', async () => {
    const { project_id: projectId } = service.credentials
    const many = await addVmRows(service, { projectId, count: 300, series: 2 })
    await resources.newRule()
    for (const id of [many[0]!, many[149]!, many[299]!]) expect(await passes(id)).toBe(true)
    const [{ behind }] = (await service.sql<{ behind: number }>(
      'SELECT count(*)::int AS behind FROM simulated_vms WHERE id = ANY ($1) AND firewall_generation < 2',
      [many],
    )) as [{ behind: number }]
    expect(behind).toBe(0)
  })
})

describe('a host that is down', () => {
  const lose = async (host: string) => {
    await service.simulator().setHostLost(host, true)
    await service.clock.advance('31 seconds')
    await service.server.reconciler.reports()
  }

  test('does not delay a rule, and counts as up only when the rule is applied', async () => {
    const vm = await resources.newVm()
    const host = await hostOf(vm)
    await lose(host.name)
    expect((await hostOf(vm)).state).toBe('down')
    await resources.newRule()
    await failFirewallOf(vm)
    await service.simulator().setHostLost(host.name, false)
    await service.server.reconciler.reports()
    expect((await hostOf(vm)).state).toBe('down')
    expect(await resources.stateOf(vm)).toBe('STATE_UNREACHABLE')
    await service.simulator().clearFaults()
    await eventually(async () => {
      await service.server.reconciler.reports()
      return (await hostOf(vm)).state === 'up'
    })
    expect(await passes(vm)).toBe(true)
    const events = await service.sql<{ type: string }>(
      'SELECT type FROM events_written WHERE resource_id = $1 ORDER BY seq DESC LIMIT 2',
      [host.id],
    )
    expect(events.map(({ type }) => type)).toEqual(['host.up', 'host.down'])
  })

  test('does not delay the release of an address, which its firewalls no longer allow when the host is up again', async () => {
    const { peer, named, address } = await peerThatAllows()
    const host = await hostOf(peer)
    // The other VM stays up: only the host of the peer falls silent.
    expect((await hostOf(named)).name).not.toBe(host.name)
    await lose(host.name)
    await resources.succeeded(await resources.removeVm(named))
    const successor = await resources.newVm({ type: 'a40.1x' })
    expect(await addressOf(successor)).toBe(address)
    await service.simulator().setHostLost(host.name, false)
    await eventually(async () => {
      await service.server.reconciler.reports()
      return (await hostOf(peer)).state === 'up'
    })
    expect(await passes(peer, { peer: address })).toBe(false)
  })
})

async function leaveTwoPublicAddresses() {
  await service.sql(`UPDATE locations SET public_ipv4 = '198.18.77.0/30' WHERE name = 'us-east1-a'`)
  // The service may cache the state of the location for a second.
  await new Promise((resolve) => setTimeout(resolve, 1_050))
}

/** Creates a VM with a rule that allows another VM by its address. There is no third public address. */
async function peerThatAllows() {
  await leaveTwoPublicAddresses()
  const peer = await resources.newVm({ type: 'a100.8x' })
  const named = await resources.newVm({ type: 'a40.1x' })
  const address = await addressOf(named)
  await resources.newRule({ sources: [{ resource_id: named }] })
  expect(await passes(peer, { peer: address })).toBe(true)
  return { peer, named, address }
}

test('a public address is not reused while a firewall still allows it', async () => {
  const { peer, named, address } = await peerThatAllows()
  await failFirewallOf(peer)
  await resources.succeeded(await resources.removeVm(named))
  await catchUp()
  expect(await passes(peer, { peer: address })).toBe(true)
  const refused = await service.call('vmCreate', { body: vmBody({ type: 'a40.1x' }) })
  expect(refused.body).toMatchObject({ code: 'out_of_stock' })
  await service.simulator().clearFaults()
  await catchUp()
  expect(await passes(peer, { peer: address })).toBe(false)
  expect(await addressOf(await resources.newVm({ type: 'a40.1x' }))).toBe(address)
})

test('a public address without rules is free as soon as its VM is deleted', async () => {
  await leaveTwoPublicAddresses()
  await resources.newVm({ type: 'a40.1x' })
  const gone = await resources.newVm({ type: 'a40.1x' })
  const address = await addressOf(gone)
  await resources.succeeded(await resources.removeVm(gone))
  expect(await addressOf(await resources.newVm({ type: 'a40.1x' }))).toBe(address)
})

describe('a rule that is being renamed', () => {
  /** Starts a rename that stays in progress, because one firewall cannot be updated. */
  async function startRename() {
    const [from, to] = [freshName('from'), freshName('to')]
    const rule = await resources.newRule({ name: from })
    const vm = await resources.newVm()
    await failFirewallOf(vm)
    const { operation } = await resources.changeRule(rule, { name: to, destination_ports: ['9999'] })
    return { from, to, rule, operation }
  }
  const refusal = async (name: string) =>
    (await service.call('firewallRuleCreate', { body: await resources.ruleBody({ name }) })).body

  test('has both names until the change succeeds, and then the old name is free', async () => {
    const { from, to, operation } = await startRename()
    expect(await refusal(from)).toMatchObject({
      code: 'already_exists',
      message: expect.stringContaining(from),
    })
    expect(await refusal(to)).toMatchObject({ code: 'already_exists', message: expect.stringContaining(to) })
    await service.simulator().clearFaults()
    await service.clock.advance('1 minute')
    await resources.succeeded({ operation })
    await resources.newRule({ name: from })
  })

  test('gets its old name back if the change fails, even if another rule requested that name', async () => {
    const other = await resources.newRule()
    const { from, to, rule, operation } = await startRename()
    expect(await refusal(from)).toMatchObject({ code: 'already_exists' })
    const taken = await service.call('firewallRuleUpdate', {
      params: { rule_id: other },
      body: { name: from },
    })
    expect(taken.body).toMatchObject({ code: 'already_exists' })
    await service.clock.advance('6 minutes')
    expect(await service.advanceUntilEnded(operation.operation_id)).toMatchObject({ state: 'FAILED' })
    const back = await service.ok('firewallRuleGet', { params: { rule_id: rule } })
    expect(back).toMatchObject({ name: from, state: 'active', destination_ports: ['8888'] })
    await service.simulator().clearFaults()
    await service.clock.advance('1 minute')
    await resources.newRule({ name: to })
  })

  test('frees both names when it is deleted', async () => {
    const { from, to, rule } = await startRename()
    await service.simulator().clearFaults()
    await service.clock.advance('1 minute')
    await resources.succeeded(await resources.removeRule(rule))
    await resources.newRule({ name: from })
    await resources.newRule({ name: to })
  })
})

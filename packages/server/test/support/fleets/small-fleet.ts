import type { RouteBody } from '@slipway/contract'
import { eventually } from '@slipway/testing/eventually.ts'
import { checkInvariants } from '@slipway/testing/invariants.ts'
import { addKey, addOrganization, addProject, tokenOfNew } from '@slipway/testing/people.ts'
import { freshName, resourcesOf, vmBody } from '@slipway/testing/resources.ts'
import { type ConfigChanges, startService } from '@slipway/testing/service.ts'
import { expect } from 'vitest'

/** Starts a service with one location. `hosts` has the number of A100 GPUs of each host. */
export async function startSmallFleet(hosts: number[], change: ConfigChanges = () => {}, frozenAt?: string) {
  const service = await startService((config) => {
    config.locations = config.locations.slice(0, 1)
    const [location] = config.locations
    if (location?.engine === 'simulated')
      location.simulated.hosts = hosts.map((gpus) => ({ count: 1, model: 'A100 40GB PCIe', gpus }))
    config.quotas.a100_gpus = 10_000
    config.quotas.vms = 10_000
    change(config)
  }, frozenAt)
  const resources = resourcesOf(service)
  type Body = RouteBody<'capacityRequestCreate'>

  const tenants: Tenant[] = []
  /** Adds a tenant with a project and a write key. */
  async function addTenant(name: string): Promise<Tenant> {
    const organization_id = await addOrganization(service.database, name)
    const owner = await tokenOfNew(service.database, { memberOf: { [organization_id]: 'owner' } })
    await service.ok('adminOrganizationQuotaSet', {
      token: service.credentials.operator_key,
      params: { organization_id },
      body: { items: [{ name: 'a100_gpus', max: 1000 }] },
    })
    const project_id = await addProject(service, owner, organization_id, 'work')
    const { secret } = await addKey(service, owner, project_id, 'write')
    const tenant = { organization_id, project_id, owner, token: secret }
    tenants.push(tenant)
    return tenant
  }
  /** Adds a user with the role `member` to the demo's organization. */
  const member = async () => ({
    token: await tokenOfNew(service.database, {
      memberOf: { [service.credentials.organization_id]: 'member' },
    }),
  })
  const asTenant = (tenant?: Tenant) =>
    tenant ? { token: tenant.token, params: { project_id: tenant.project_id } } : {}

  /** Waits until everything that is due now has happened. */
  const settled = () =>
    eventually(async () => {
      await service.server.reconciler.capacity()
      await service.server.reconciler.reports()
      const busy = await service.sql(
        `SELECT 1 FROM operation_queue UNION ALL SELECT 1 FROM gpus WHERE state = 'quarantined' AND NOT is_held_back
         UNION ALL SELECT 1 FROM capacity_requests WHERE due_at <= slipway_now()
         UNION ALL SELECT 1 FROM capacity_lanes WHERE due_at <= slipway_now()
         UNION ALL SELECT 1 FROM reservations WHERE due_at <= slipway_now()`,
      )
      return busy.length === 0
    })

  /** Deletes everything that a test has left behind, and checks the invariants and that all GPUs are free. */
  async function clear() {
    await service.simulator().clearFaults()
    const operator = { token: service.credentials.operator_key }
    for (const { id, state } of (await service.ok('adminReservationList', operator)).items)
      if (state !== 'ended')
        await service.ok('adminReservationEnd', { ...operator, params: { reservation_id: id } })
    for (const tenant of [undefined, ...tenants]) {
      const { token, params = {} } = asTenant(tenant)
      const call = (id: Parameters<typeof service.call>[0], more: object) =>
        service.call(id, { ...(token && { token }), params: { ...params, ...more } })
      const list = async (id: 'capacityRequestList' | 'instanceGroupList' | 'vmList') =>
        ((await call(id, {})).body as { items: { id: string; state: string }[] }).items
      for (const { id, state } of await list('capacityRequestList'))
        if (state === 'waiting' || state === 'held')
          await call('capacityRequestDelete', { capacity_request_id: id })
      for (const { id } of await list('instanceGroupList'))
        await call('instanceGroupDelete', { instance_group_id: id })
      for (const { id } of await list('vmList')) await call('vmDelete', { vm_id: id })
    }
    await settled()
    await service.clock.advance('1 second')
    await checkInvariants(service)
    expect(await service.sql(`SELECT state FROM gpus WHERE state <> 'free'`)).toEqual([])
  }

  return {
    ...resources,
    service,
    clear,
    addTenant,
    member,
    /** Creates a capacity request, by default for a VM with a single GPU. */
    wait: (more: Partial<Body> = {}, tenant?: Tenant) =>
      service.ok('capacityRequestCreate', {
        ...asTenant(tenant),
        body: more.start_vm_id || more.instance_group ? more : { vm: vmBody(), ...more },
      }),
    request: (id: string, tenant?: Tenant) =>
      service.ok('capacityRequestGet', {
        ...asTenant(tenant),
        params: { ...asTenant(tenant).params, capacity_request_id: id },
      }),
    claim: (id: string) => service.call('capacityRequestClaim', { params: { capacity_request_id: id } }),
    settled,
    /** Deletes a group and its members, so that their GPUs are offered. */
    async removeGroup(instance_group_id: string) {
      const { operation } = await service.ok('instanceGroupDelete', { params: { instance_group_id } })
      await service.advanceUntilEnded(operation.operation_id)
      await settled()
    },
    /** Deletes a VM, so that its GPUs are offered. */
    async free(vmId: string, tenant?: Tenant) {
      await service.ok('vmDelete', {
        ...asTenant(tenant),
        params: { ...asTenant(tenant).params, vm_id: vmId },
      })
      await settled()
    },
  }
}

interface Tenant {
  organization_id: string
  project_id: string
  owner: string
  token: string
}

/** A body that creates a group; every call has a new name. */
export function groupBody(desired_count: number, changes: object = {}, vm: Record<string, unknown> = {}) {
  const { name: _, ...member } = vmBody(vm)
  return { name: freshName('group'), desired_count, vm: member, ...changes }
}

export type SmallFleet = Awaited<ReturnType<typeof startSmallFleet>>

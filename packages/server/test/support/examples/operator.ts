import { eventually } from '@slipway/testing/eventually.ts'
import { sshKey } from '@slipway/testing/ssh-key.ts'
import type { Tenant } from './people.ts'
import type { Recorder } from './recorder.ts'
import { type Resources, waitForEnd, waitForSuccess } from './tenant.ts'

/** Records the operator's reads while the tenant's VM runs. */
export async function recordFleet({ service, ok }: Recorder, tenant: Tenant, { vm_id }: Resources) {
  const token = service.credentials.operator_key
  const { project_id, organization_id } = tenant
  await ok('adminVmList', { token })
  await ok('adminLocationList', { token })
  // A GPU that a deleted VM left is free after the next report.
  await eventually(async () => {
    await service.server.reconciler.reports()
    return (await service.sql(`SELECT FROM gpus WHERE state = 'quarantined'`)).length === 0
  })
  await ok('adminCapacityList', { token })
  await ok('adminImageList', { token })
  await ok('adminPriceList', { token })
  await ok('adminQuotaList', { token, query: { project_id } })
  await ok('adminOrganizationQuotaList', { token, params: { organization_id } })
  await ok('adminOrganizationList', { token })
  await ok('adminProjectList', { token })
  await ok('adminUserList', { token })
  await ok('adminKeyList', { token })
  await ok('adminSearch', { token, query: { q: 'train' } })
  const { items } = await service.ok('adminHostList', { token, query: { limit: 500 } })
  const host = items.find(({ vms }) => vms.some(({ id }) => id === vm_id))!
  await ok('adminHostGet', { token, params: { host_id: host.id } })
  await ok('adminHostList', { token, query: { location: host.location } })
}

/** Records a reservation that is sold, changed and ended. It begins later, so that no GPU is held for it yet. */
export async function recordReservations({ ok, service }: Recorder, tenant: Tenant) {
  const token = service.credentials.operator_key
  const { organization_id, project_id } = tenant
  const reservation = await ok('adminReservationCreate', {
    token,
    body: {
      organization_id,
      billing_project_id: project_id,
      type: 'a100.8x',
      location: 'us-east1-a',
      count: 2,
      contract_start_date: '2027-01-01T00:00:00Z',
      contract_end_date: '2027-07-01T00:00:00Z',
      usd_per_gpu_hour: 1.1,
    },
  })
  const params = { reservation_id: reservation.id }
  await ok('adminReservationGet', { token, params })
  await ok('adminReservationList', { token })
  const own = { token: tenant.ownerToken, params: { organization_id, ...params } }
  await ok('reservationList', { ...own, query: { status: 'scheduled' } })
  await ok('reservationGet', own)
  const body = { contract_end_date: '2027-10-01T00:00:00Z', projects: [project_id] }
  await ok('adminReservationUpdate', { token, params, body })
  await ok('adminReservationEnd', { token, params })
}

export async function recordFleetChanges({ service, ok }: Recorder, { project_id }: Tenant) {
  const token = service.credentials.operator_key
  const host = await ok('adminHostCreate', {
    token,
    body: { name: 'us-east1-a-a100-5', location: 'us-east1-a', gpus: { model: 'A100 40GB PCIe', count: 8 } },
  })
  const params = { host_id: host.id }
  await service.server.reconciler.reports()
  const { gpus } = await service.ok('adminHostGet', { token, params })
  await ok('adminGpuUpdate', { token, params: { gpu_id: gpus[0]!.id }, body: { state: 'quarantined' } })
  await service.sql(
    `INSERT INTO gpu_faults (gpu_id, xid, source, at) VALUES ($1, 79, 'host', slipway_now())`,
    [gpus[0]!.id],
  )
  await ok('adminGpuFaultList', { token, params: { gpu_id: gpus[0]!.id } })
  await ok('adminGpuFaultDayList', { token, query: { days: 7, group_by: 'host' } })
  await ok('adminGpuCheck', { token, params: { gpu_id: gpus[0]!.id } })
  await service.server.reconciler.reports()
  await ok('adminHostUpdate', { token, params, body: { schedulable: false } })
  await ok('adminHostMaintenanceSet', {
    token,
    params,
    body: { at: '2099-12-01T06:00:00Z', note: 'New power supplies' },
  })
  await ok('adminHostMaintenanceDelete', { token, params })
  await ok('adminHostDrain', { token, params })
  await service.simulator().setHostLost(host.name, true)
  await service.clock.advance('31 seconds')
  await service.server.reconciler.reports()
  await ok('adminAlertList', { token })
  await ok('adminHostForget', { token, params })
  await ok('adminHostDelete', { token, params })

  const image = await ok('adminImageCreate', {
    token,
    body: {
      ...{ name: 'ubuntu24.04-jax:latest', description: 'Ubuntu 24.04 with JAX', tags: ['ubuntu', 'jax'] },
      locations: ['us-east1-a'],
    },
  })
  const image_id = image.id
  const locations = ['us-east1-a', 'eu-north1-a']
  await ok('adminImageUpdate', { token, params: { image_id }, body: { locations } })
  await ok('adminImageDelete', { token, params: { image_id } })
  const price = { product_name: 'a100.1x', unit: 'vm_hour', usd: 1.45 }
  await ok('adminPriceSet', { token, body: { items: [price] } })
  await ok('adminQuotaSet', { token, body: { project_id, items: [{ name: 'a100_gpus', max: 16 }] } })
  const key = await ok('adminKeyCreate', { token, body: { name: 'fleet-report' } })
  await ok('adminKeyDelete', { token, params: { key_id: key.id } })
}

/** Starts the creation of a VM that can neither continue nor be undone, and waits until it is stuck. */
async function beginStuckCreation(recorder: Recorder, name: string) {
  const { service, defaults } = recorder
  const simulator = service.simulator()
  await simulator.addFault({ method: 'ensureVm', kind: 'reject' })
  await simulator.addFault({ method: 'removeVm', kind: 'fail', times: 1000 })
  const image = 'ubuntu24.04-nvidia:latest'
  const { operation } = await service.ok('vmCreate', {
    ...defaults,
    body: { name, type: 'a40.1x', location: 'us-east1-a', image, ssh_public_key: sshKey },
  })
  const values = [operation.operation_id]
  await eventually(async () => {
    const [row] = await service.sql<{ is_stuck: boolean }>(
      'SELECT is_stuck FROM operations WHERE id = $1',
      values,
    )
    // Makes the next attempt due now, because pauses between attempts grow to half a minute.
    await service.sql(
      `UPDATE operation_queue SET run_at = slipway_now() FROM operations
       WHERE operation_id = $1 AND id = $1 AND lease_token IS NULL AND NOT is_stuck AND run_at > slipway_now()`,
      values,
    )
    service.server.services.signals.send('operations')
    return row!.is_stuck
  })
  return operation
}

/** Records how operators handle stuck operations, VMs of tenants and the suspension of an organization. */
export async function recordInterventions(recorder: Recorder, tenant: Tenant) {
  const { service, ok, defaults } = recorder
  const token = service.credentials.operator_key
  const simulator = service.simulator()
  const retried = await beginStuckCreation(recorder, 'stuck-1')
  await ok('adminOperationList', { token, query: { stuck: true } })
  await ok('adminOperationGet', { token, params: { operation_id: retried.operation_id } })
  await simulator.clearFaults()
  await ok('adminOperationRetry', { token, params: { operation_id: retried.operation_id } })
  await waitForEnd(recorder, retried)
  const abandoned = await beginStuckCreation(recorder, 'stuck-2')
  await simulator.clearFaults()
  await ok('adminOperationAbandon', { token, params: { operation_id: abandoned.operation_id } })
  // An abandoned resource is deleted in the background.
  const params = { ...defaults.params, vm_id: abandoned.metadata.id }
  await eventually(async () => (await service.call('vmGet', { ...defaults, params })).status === 404)

  const image = 'ubuntu24.04-nvidia:latest'
  const body = { name: 'idle-1', type: 'a40.1x', location: 'us-east1-a', image, ssh_public_key: sshKey }
  const vm_id = await waitForSuccess(recorder, await service.ok('vmCreate', { ...defaults, body }))
  await waitForSuccess(recorder, await ok('adminVmStop', { token, params: { vm_id } }))
  await waitForSuccess(recorder, await ok('adminVmDelete', { token, params: { vm_id } }))
  await ok('adminEventList', { token })
  await ok('organizationEventList', { token: tenant.ownerToken })

  const { organization_id } = tenant
  const suspension = { suspended: true, stop_vms: true }
  await ok('adminOrganizationUpdate', { token, params: { organization_id }, body: suspension })
  await recorder.refused('suspended', 'diskCreate', {
    body: { name: 'datasets', size: '500GiB', location: 'us-east1-a' },
  })
  await service.ok('adminOrganizationUpdate', {
    token,
    params: { organization_id },
    body: { suspended: false },
  })
}

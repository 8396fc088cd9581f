import { eventually } from '@slipway/testing/eventually.ts'
import { sshKey } from '@slipway/testing/ssh-key.ts'
import { startReceiver } from '@slipway/testing/webhook-receiver.ts'
import type { Tenant } from './people.ts'
import type { Recorder } from './recorder.ts'

const location = 'us-east1-a'
const labels = { team: 'ml' }
const trainVm = { name: 'train-7', type: 'a100.1x', location, image: 'ubuntu24.04-nvidia:latest' } as const
const newVm = { ...trainVm, ssh_public_key: sshKey, labels, description: 'Fine-tuning run of November' }

type OperationResponse = { operation: { operation_id: string; metadata: { id: string } } }

/** Waits for the end of an operation without recording it, and returns its state. */
export async function waitForEnd(
  { service, defaults }: Recorder,
  operation: OperationResponse['operation'],
): Promise<string> {
  const params = { ...defaults.params, operation_id: operation.operation_id }
  return eventually(async () => {
    const { state } = await service.ok('operationGet', { ...defaults, params, query: { wait: 20 } })
    return state !== 'IN_PROGRESS' && state
  })
}

/** Waits for the success of an operation, and returns the id of its resource. */
export async function waitForSuccess(recorder: Recorder, { operation }: OperationResponse): Promise<string> {
  const state = await waitForEnd(recorder, operation)
  if (state !== 'SUCCEEDED') throw new Error(`${operation.operation_id} ended as ${state}`)
  return operation.metadata.id
}

export async function recordCatalogue({ ok }: Recorder) {
  const query = { product_name: 'a100.1x' }
  await ok('locationList')
  await ok('availabilityList', { query })
  await ok('capacityList', { query })
  await ok('specList')
  await ok('imageList')
  await ok('priceList')
  await ok('offerList', { query: { gpu_model: 'a100' } })
  await ok('catalogueList', { token: null, query: { gpu_model: 'a100' } })
  await ok('estimateCreate', { body: { vm: newVm } })
}

/**
 * Records a capacity request that is held and claimed, and one that is cancelled. Free GPUs are held for both
 * immediately.
 */
export async function recordWaiting(recorder: Recorder) {
  const { service, ok, defaults } = recorder
  const wait = { vm: { ...newVm, name: 'train-8' }, on_available: 'hold', labels }
  const held = async (params: { capacity_request_id: string }) =>
    eventually(async () => {
      const request = await service.ok('capacityRequestGet', {
        ...defaults,
        params: { ...defaults.params, ...params },
      })
      return request.state === 'held'
    })
  const { id: capacity_request_id } = await ok('capacityRequestCreate', { body: wait })
  const params = { capacity_request_id }
  await held(params)
  await ok('capacityRequestGet', { params })
  await ok('capacityRequestList')
  await ok('adminCapacityRequestList', { token: service.credentials.operator_key })
  await ok('capacityRequestUpdate', { params, body: { until: '2026-11-05T09:00:00Z' } })
  const vm_id = await waitForSuccess(recorder, await ok('capacityRequestClaim', { params }))
  await waitForSuccess(
    recorder,
    await service.ok('vmDelete', { ...defaults, params: { ...defaults.params, vm_id } }),
  )
  const other = await service.ok('capacityRequestCreate', { ...defaults, body: wait })
  await held({ capacity_request_id: other.id })
  await ok('capacityRequestDelete', { params: { capacity_request_id: other.id } })
}

export interface Resources {
  vm_id: string
  disk_id: string
  rule_id: string
  network_id: string
}

export async function recordResources(recorder: Recorder): Promise<Resources> {
  const { service, ok } = recorder
  const sshKeyBody = { name: 'ada@laptop', public_key: sshKey }
  const { id: ssh_key_id } = await ok('sshKeyCreate', { body: sshKeyBody })
  await ok('sshKeyList')
  await ok('sshKeyDelete', { params: { ssh_key_id } })

  await recordGroups(recorder)

  const created = await ok('vmCreate', { body: newVm })
  const vm_id = await waitForSuccess(recorder, created)
  const operation = { params: { operation_id: created.operation.operation_id } }
  await ok('operationGet', operation)
  await ok('vmOperationGet', operation)
  await ok('operationSteps', operation)
  await service.clock.advance('90 seconds')

  const disk = await ok('diskCreate', {
    body: { name: 'datasets', size: '500GiB', location, labels, description: 'Tokenized training data' },
  })
  const disk_id = await waitForSuccess(recorder, disk)
  await ok('diskOperationGet', { params: { operation_id: disk.operation.operation_id } })
  const attachment = { disk_id, attachment_type: 'data' as const, mode: 'read-write' as const }
  await waitForSuccess(
    recorder,
    await ok('vmAttachDisks', { params: { vm_id }, body: { attach_disks: [attachment] } }),
  )
  await ok('diskGet', { params: { disk_id } })
  await ok('diskList')
  await ok('diskOperationList')
  await recordCopies(recorder, vm_id, disk_id)
  await ok('vmGet', { params: { vm_id } })
  await ok('vmList')
  await ok('vmSerialLog', { params: { vm_id } })
  await recordMetrics(recorder, vm_id)
  await ok('vmConsoleCreate', { params: { vm_id }, body: { mode: 'write' } })
  const { network_id, rule_id } = await recordNetworks(recorder, vm_id)
  return { vm_id, disk_id, rule_id, network_id }
}

/** Records a snapshot of the disk, and an image of the running VM. */
async function recordCopies(recorder: Recorder, vm_id: string, disk_id: string) {
  const { ok } = recorder
  const snapshot = await ok('snapshotCreate', { body: { name: 'datasets-monday', disk_id, labels } })
  const snapshotParams = { params: { snapshot_id: await waitForSuccess(recorder, snapshot) } }
  await ok('snapshotOperationGet', { params: { operation_id: snapshot.operation.operation_id } })
  await ok('snapshotOperationList')
  await ok('snapshotGet', snapshotParams)
  await ok('snapshotList')
  await ok('snapshotUpdate', { ...snapshotParams, body: { description: 'Before the migration' } })
  const image = await ok('customImageCreate', {
    body: { name: 'trainer:v1', vm_id, allow_crash_consistent: true, tags: ['cuda'], labels },
  })
  const imageParams = { params: { custom_image_id: await waitForSuccess(recorder, image) } }
  await ok('customImageOperationGet', { params: { operation_id: image.operation.operation_id } })
  await ok('customImageOperationList')
  await ok('customImageGet', imageParams)
  await ok('customImageList', { query: { name_prefix: 'trainer:' } })
  await ok('customImageUpdate', { ...imageParams, body: { description: 'With CUDA 13' } })
  await waitForSuccess(recorder, await ok('customImageDelete', imageParams))
  await waitForSuccess(recorder, await ok('snapshotDelete', snapshotParams))
}

async function recordMetrics({ service, ok }: Recorder, vm_id: string) {
  // Begin a minute that has no sample yet.
  await service.clock.advance('1 minute')
  await service.simulator().setMetrics(vm_id, { gpu_utilization: 87, ssh_sessions: 1 })
  await service.server.reconciler.samples()
  const [clock] = await service.sql<{ now: Date }>('SELECT slipway_now() AS now')
  const names = 'slipway_vm_memory_bytes,DCGM_FI_DEV_GPU_UTIL'
  const range = { names, start: clock!.now.toISOString(), end: clock!.now.toISOString() }
  await ok('vmMetrics', { params: { vm_id }, query: range })
  await ok('projectMetrics', { query: { vm_ids: vm_id, ...range } })
  await ok('projectMetricsScrape')
}

/** Records a template and a group whose members are created from it. */
async function recordGroups(recorder: Recorder) {
  const { ok } = recorder
  const { id: instance_template_id } = await ok('instanceTemplateCreate', {
    body: { ...trainVm, name: 'trainer', ssh_public_key: sshKey, new_disks: [{ size: '100GiB' }] },
  })
  await ok('instanceTemplateGet', { params: { instance_template_id } })
  await ok('instanceTemplateList', { query: { latest: true } })
  const group = await ok('instanceGroupCreate', {
    body: { name: 'trainer', desired_count: 1, template_id: instance_template_id, labels },
  })
  const params = { instance_group_id: await waitForSuccess(recorder, group) }
  await ok('instanceGroupOperationGet', { params: { operation_id: group.operation.operation_id } })
  await ok('instanceGroupOperationList')
  await ok('instanceGroupGet', { params })
  await ok('instanceGroupList')
  await waitForSuccess(recorder, await ok('instanceGroupStop', { params }))
  await waitForSuccess(recorder, await ok('instanceGroupStart', { params }))
  await waitForSuccess(recorder, await ok('instanceGroupUpdate', { params, body: { desired_count: 0 } }))
  await waitForSuccess(recorder, await ok('instanceGroupDelete', { params, query: { delete_disks: true } }))
  await ok('instanceTemplateDelete', { params: { instance_template_id } })
}

async function recordNetworks(recorder: Recorder, vm_id: string) {
  const { ok } = recorder
  const { items } = await ok('networkList')
  const network_id = items[0]!.id
  const rule = await ok('firewallRuleCreate', {
    body: {
      ...{ name: 'allow-jupyter', vpc_network_id: network_id, action: 'allow', direction: 'ingress' },
      ...{ protocols: ['tcp'], sources: [{ cidr: '203.0.113.0/24' }], destination_ports: ['8888'], labels },
      destinations: [{ resource_id: vm_id }],
    },
  })
  const rule_id = await waitForSuccess(recorder, rule)
  await ok('firewallRuleOperationGet', { params: { operation_id: rule.operation.operation_id } })
  await ok('firewallRuleOperationList')
  await ok('firewallRuleList')
  await ok('firewallRuleGet', { params: { rule_id } })
  await ok('firewallRuleTest', {
    body: {
      ...{ direction: 'ingress', protocol: 'tcp', source: '203.0.113.7', destination: vm_id },
      destination_port: 8888,
    },
  })
  const change = { sources: [{ cidr: '203.0.113.0/24' }], destination_ports: ['8888', '9000-9010'] }
  await waitForSuccess(recorder, await ok('firewallRuleUpdate', { params: { rule_id }, body: change }))

  const lab = await ok('networkCreate', { body: { name: 'lab', cidr: '10.20.0.0/16' } })
  await ok('networkGet', { params: { network_id: lab.id } })
  await ok('networkUpdate', { params: { network_id: lab.id }, body: { name: 'lab', labels } })
  const subnet = await ok('subnetCreate', {
    body: { name: 'lab-east', cidr: '10.20.16.0/20', vpc_network_id: lab.id, location },
  })
  await ok('subnetList')
  await ok('subnetGet', { params: { subnet_id: subnet.id } })
  await ok('subnetUpdate', { params: { subnet_id: subnet.id }, body: { name: 'lab-b' } })
  await ok('subnetDelete', { params: { subnet_id: subnet.id } })
  const reserved = await ok('addressCreate', { body: { name: 'gateway', location } })
  const address = { params: { address_id: reserved.id } }
  await ok('addressList')
  await ok('addressGet', address)
  await ok('addressUpdate', { ...address, body: { labels } })
  await waitForSuccess(recorder, await ok('addressAssign', { ...address, body: { vm_id } }))
  await waitForSuccess(recorder, await ok('addressUnassign', address))
  await ok('addressDelete', address)
  await ok('networkDelete', { params: { network_id: lab.id } })
  return { network_id, rule_id }
}

/** Records webhooks and events. The receiver represents a server of the tenant. */
export async function recordEvents({ service, ok }: Recorder, { ownerToken: token }: Tenant) {
  const receiver = await startReceiver()
  const body = {
    url: `${receiver.url}/slipway`,
    event_types: ['webhook.test', 'vm.running', 'operation.failed'],
  }
  const { id: webhook_id } = await ok('webhookCreate', { token, body })
  const params = { webhook_id }
  await ok('webhookList')
  await ok('webhookTest', { token, params })
  const delivered = () =>
    eventually(async () => {
      const { items } = await service.ok('webhookDeliveryList', {
        token,
        params: { ...params, project_id: (await service.ok('projectList', { token }))[0]!.id },
      })
      return items.length > 0 && items.every(({ state }) => state === 'delivered')
    })
  await delivered()
  const { items } = await ok('webhookDeliveryList', { params })
  const delivery = { ...params, delivery_id: items[0]!.id }
  await ok('webhookDeliveryGet', { params: delivery })
  await ok('webhookDeliveryReplay', { token, params: delivery })
  await delivered()
  await ok('webhookRotateSecret', { token, params })
  await ok('webhookUpdate', { token, params, body: { state: 'paused' } })
  await ok('webhookDelete', { token, params })
  return receiver.url
}

/** Records the costs after a day and a half, and the invoice of a month. */
export async function recordMoney(
  { service, ok, recording }: Recorder,
  tenant: Tenant,
  { vm_id }: Resources,
) {
  const { ownerToken: token } = tenant
  await ok('budgetSet', { token, body: { monthly_usd: 50, hard_stop: true } })
  await service.clock.freeze('2026-10-31T12:00:00Z')
  await service.server.billing.once()
  await ok('budgetGet')
  await ok('projectCosts')
  await ok('projectResourceCost', { params: { resource_id: vm_id } })
  await ok('organizationCosts', { token })
  await ok('organizationProjectList', { token })
  await ok('alertList')
  await ok('organizationAlertList', { token })
  await ok('quotaList')
  await ok('organizationQuotaList', { token })
  await ok('organizationSearch', { token, query: { q: 'train' } })
  const query = { start_date: '2026-10-30', end_date: '2026-10-30' }
  await ok('projectUsage', { query })
  const csv = await service.request(
    'GET',
    `/v0.1/projects/${tenant.project_id}/usage?start_date=2026-10-30&end_date=2026-10-30`,
    { token, headers: { accept: 'text/csv' } },
  )
  recording.texts['text/csv'] = String(csv.body)
  await ok('organizationUsage', { token, query })
  await service.clock.freeze('2026-11-01T00:10:00Z')
  await service.server.billing.once()
  await ok('organizationInvoices', { token })
}

/** Deletes what `recordResources` created. */
export async function recordRemoval(recorder: Recorder, { vm_id, disk_id, rule_id }: Resources) {
  const { service, ok } = recorder
  await waitForSuccess(recorder, await ok('vmUpdate', { params: { vm_id }, body: { action: 'STOP' } }))
  await service.clock.advance('20 seconds')
  const detachment = { detach_disks: [disk_id] }
  await waitForSuccess(recorder, await ok('vmDetachDisks', { params: { vm_id }, body: detachment }))
  await ok('suggestionList')
  await waitForSuccess(recorder, await ok('diskUpdate', { params: { disk_id }, body: { size: '1TiB' } }))
  await waitForSuccess(recorder, await ok('vmDelete', { params: { vm_id } }))
  await waitForSuccess(recorder, await ok('diskDelete', { params: { disk_id } }))
  await waitForSuccess(recorder, await ok('firewallRuleDelete', { params: { rule_id } }))
  await ok('operationList')
  await ok('vmOperationList')
  await ok('eventList')
}

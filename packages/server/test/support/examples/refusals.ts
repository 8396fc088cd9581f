import { eventually } from '@slipway/testing/eventually.ts'
import { sshKey } from '@slipway/testing/ssh-key.ts'
import { toFailure } from '../../../src/http/errors.ts'
import type { Recorder } from './recorder.ts'
import type { Resources } from './tenant.ts'

/** Records a refusal of each kind that a running service can return. */
export async function recordRefusals(
  { service, refused, defaults }: Recorder,
  { vm_id, disk_id }: Resources,
) {
  const location = 'us-east1-a'
  const image = 'ubuntu24.04-nvidia:latest'
  const vm = { name: 'train-8', type: 'a100.1x', location, image, ssh_public_key: sshKey }
  const disk = { name: 'checkpoints', size: '500GiB', location }
  await refused('invalid_argument', 'diskCreate', { body: { ...disk, size: '500GB' } })
  await refused('unauthenticated', 'vmList', { token: 'slp_unknown_key' })
  await refused('not_found', 'vmGet', { params: { vm_id: disk_id } })
  await refused('already_exists', 'vmCreate', { body: { ...vm, name: 'train-7' } })
  await refused('conflict', 'diskDelete', { params: { disk_id } })
  await refused('idempotency_key_reused', 'diskCreate', {
    body: await sentBefore(),
    headers: { 'idempotency-key': 'create-checkpoints' },
  })

  const protect = (deletion_protection: boolean) =>
    service.ok('vmUpdate', {
      ...defaults,
      params: { ...defaults.params, vm_id },
      body: { deletion_protection },
    })
  await protect(true)
  await refused('protected', 'vmDelete', { params: { vm_id } })
  await protect(false)

  const operator = { token: service.credentials.operator_key, params: defaults.params }
  const limit = (max: number | null) =>
    service.ok('adminOrganizationQuotaSet', { ...operator, body: { items: [{ name: 'a40_gpus', max }] } })
  await limit(0)
  await refused('quota_exceeded', 'vmCreate', { body: { ...vm, type: 'a40.1x' } })
  await limit(8)
  await service.sql(`UPDATE hosts SET is_schedulable = false WHERE location = $1`, [location])
  await refused('out_of_stock', 'vmCreate', { body: { ...vm, type: 'a40.8x' } })
  await service.sql(`UPDATE hosts SET is_schedulable = true WHERE location = $1`, [location])

  async function sentBefore() {
    const headers = { 'idempotency-key': 'create-checkpoints' }
    await service.call('diskCreate', { ...defaults, body: { ...disk, size: '1' }, headers })
    const { operation } = await service.ok('diskCreate', { ...defaults, body: disk, headers })
    const params = { ...defaults.params, disk_id: operation.metadata.id }
    await service.ok('operationGet', {
      ...defaults,
      params: { ...params, operation_id: operation.operation_id },
      query: { wait: 20 },
    })
    await service.ok('diskDelete', { ...defaults, params })
    return { ...disk, size: '1TiB' }
  }
}

/** Records refusals of malformed requests, which are not calls of a route. */
export async function recordMalformedRequests({ service, recording, defaults }: Recorder) {
  const path = `/v0.1/projects/${defaults.params.project_id}/vms`
  const send = async (method: string, headers: Record<string, string>, body?: string) => {
    const response = await service.request(method, path, {
      token: defaults.token,
      headers: { 'x-request-id': 'req-5f0c2d', ...headers },
      ...(body !== undefined && { body }),
    })
    const refusal = response.body as { code: keyof typeof recording.errors }
    recording.errors[refusal.code] ??= refusal
  }
  await send('PUT', {}, '{}')
  await send('POST', { 'content-type': 'text/plain' }, 'a VM')
  await send('POST', {}, JSON.stringify({ name: 'x'.repeat(2 ** 20) }))
}

/** Records the refusal by a second process with a small rate limit. */
export async function recordRateLimit({ service, recording, defaults }: Recorder) {
  const limited = await service.another((config) => {
    config.limits.requestsPerSecond = 1
    config.limits.burst = 1
  })
  const headers = { authorization: `Bearer ${defaults.token}`, 'x-request-id': 'req-5f0c2d' }
  recording.errors.rate_limited = await eventually(async () => {
    const response = await fetch(`${limited.url}/v0.1/projects/${defaults.params.project_id}/vms`, {
      headers,
    })
    return response.status === 429 && response.json()
  })
}

/** Records failures that no request can cause, with the server's messages. */
export function recordFailures({ recording }: Recorder) {
  const causes = { internal_error: new Error('unexpected'), unavailable: new Error('Connection terminated') }
  for (const [code, cause] of Object.entries(causes) as [keyof typeof causes, unknown][]) {
    const failure = toFailure(cause)
    if (failure.code !== code) throw new Error(`not ${code} but ${failure.code}`)
    recording.errors[code] = { code, message: failure.message, request_id: 'req-5f0c2d' }
  }
}

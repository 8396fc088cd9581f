import { sshKey } from '@slipway/testing/ssh-key.ts'
import type { Effort } from '../effort.ts'
import { atMost, type Figure, median } from '../figures.ts'
import { addTenants, type Tenant } from '../fixtures.ts'
import { locations, type RunningService } from '../running-service.ts'

const members = 64

/**
 * Measures groups of single-GPU VMs, one after another. The members of a group are admitted in one
 * transaction and start running together.
 */
export async function measureGroups(service: RunningService, { groups }: Effort): Promise<Figure[]> {
  const [tenant] = await addTenants(service.database, 'groups', 1, 1)
  const accepted: number[] = []
  const running: number[] = []
  // The first group is not counted, because the process is still compiling its code.
  for (let index = 0; index <= groups; index++) {
    const times = await measureGroup(service.main.url, tenant!, `g-${index}`)
    if (index === 0) continue
    accepted.push(times.accepted)
    running.push(times.running)
  }
  const [acceptedMs, runningMs] = [median(accepted), median(running)]
  return [
    {
      id: 'group-accepted',
      what: `POST of a group of ${members} single-GPU VMs → accepted, p50`,
      value: acceptedMs,
      unit: 'ms',
      aim: atMost(acceptedMs, 100, 'ms'),
    },
    {
      id: 'group-running',
      what: `POST of a group of ${members} single-GPU VMs → all running, p50`,
      value: runningMs,
      unit: 'ms',
      aim: atMost(runningMs, 2_000, 'ms'),
    },
  ]
}

async function measureGroup(url: string, { projectId, token }: Tenant, name: string) {
  const base = `${url}/v0.1/projects/${projectId}/instance-groups`
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const call = async (path: string, method: string, body?: unknown) => {
    const response = await fetch(`${base}${path}`, {
      method,
      headers,
      body: body ? JSON.stringify(body) : null,
    })
    if (response.status !== 200) throw new Error(`${method} ${path}: ${await response.text()}`)
    return response.json() as Promise<{
      operation: { operation_id: string; metadata: { id: string } }
      state: string
    }>
  }
  const waitForSuccess = async (operationId: string) => {
    const { state } = await call(`/operations/${operationId}?wait=60`, 'GET')
    if (state !== 'SUCCEEDED') throw new Error(`an operation on a group ended with ${state}`)
  }
  const vm = { type: 'a100.1x', location: locations[0], image: 'debian12', ssh_public_key: sshKey }
  const startedAt = performance.now()
  const { operation } = await call('', 'POST', { name, desired_count: members, vm })
  const accepted = performance.now() - startedAt
  await waitForSuccess(operation.operation_id)
  const running = performance.now() - startedAt
  const removal = await call(`/${operation.metadata.id}`, 'DELETE')
  await waitForSuccess(removal.operation.operation_id)
  return { accepted, running }
}

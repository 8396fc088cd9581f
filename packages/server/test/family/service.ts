import { ownerToken } from '@slipway/testing/people.ts'
import { freshName } from '@slipway/testing/resources.ts'
import { startService } from '@slipway/testing/service.ts'
import { sshKey } from '@slipway/testing/ssh-key.ts'
import { expect } from 'vitest'
import { type FamilyResponse, familyClient, type SigningKey } from './client.ts'

export const location = 'us-east1-a'
export const instances = 'compute/vms/instances'

/** The network interface of a request, with the empty members that clients send. */
export const interfaces = (type: string) => [
  {
    ...{
      ...{ external_dns_name: '', id: '', interface_type: '', mac_address: '' },
      ...{ name: '', network: '', subnet: '' },
    },
    ips: [{ private_ipv4: null, public_ipv4: { address: '', id: '', type } }],
  },
]

export const vmBody = (more: object = {}) => ({
  ...{ name: freshName('vm'), type: 'a100.1x', location, image: 'ubuntu22.04-nvidia-pcie-docker:latest' },
  ...{ ssh_public_key: sshKey, startup_script: '', shutdown_script: '' },
  install_crusoe_watch_agent: true,
  ...more,
})

/** Starts a service with the compatible API, and returns a client of the demo's owner, who signs requests. */
export async function startFamily() {
  const service = await startService((config) => {
    config.server.familyApi = true
  })
  const key: SigningKey = await service.ok('organizationKeyCreate', {
    token: await ownerToken(service),
    body: { name: 'terraform', role: 'owner', kind: 'signing' },
  })
  const send = familyClient(service, key)
  const project = `/v1alpha5/projects/${service.credentials.project_id}`
  const ok = async (method: string, path: string, body?: unknown) => {
    const response = await send(method, path, { body })
    expect(response, `${method} ${path} ${JSON.stringify(response.body)}`).toMatchObject({ status: 200 })
    expect(response.headers.get('content-type')).toMatch(/^application\/json/)
    return response.body
  }
  /** Waits for the end of an operation, and returns what a client that polls it gets. */
  async function ended({ operation }: FamilyResponse['body'], resource: string) {
    await service.ended(operation.operation_id)
    return ok('GET', `${project}/${resource}/operations/${operation.operation_id}`)
  }
  async function createVm(more: object = {}) {
    const operation = await ended(await ok('POST', `${project}/${instances}`, vmBody(more)), instances)
    expect(operation.state).toBe('SUCCEEDED')
    return operation.result
  }
  return { service, key, send, project, ok, ended, createVm }
}

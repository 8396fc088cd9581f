import { addKey, addProject, setPayment, someEmail, tokenOfNew } from '@slipway/testing/people.ts'
import { vmBody } from '@slipway/testing/resources.ts'
import { type ApiResponse, startService, type TestService } from '@slipway/testing/service.ts'
import { sshKey } from '@slipway/testing/ssh-key.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'

/** The owner of an organization tries to exceed its quotas. */
let service: TestService
let organization_id: string
let owner: string
beforeAll(async () => {
  service = await startService((config) => {
    config.webhooks.allowPrivateRanges = ['127.0.0.0/8']
  })
  const { operator_key: token } = service.credentials
  organization_id = (await service.ok('adminOrganizationCreate', { token, body: { name: 'Harbour Labs' } }))
    .id
  await setPayment(service.database, organization_id, 'active')
  owner = await tokenOfNew(service.database, { memberOf: { [organization_id]: 'owner' } })
})
afterAll(() => service.close())

const limit = (limits: Record<string, number>) =>
  service.ok('adminOrganizationQuotaSet', {
    token: service.credentials.operator_key,
    params: { organization_id },
    body: { items: Object.entries(limits).map(([name, max]) => ({ name, max })) },
  })
const quota = async (name: string) => {
  const { items } = await service.ok('organizationQuotaList', { token: owner, params: { organization_id } })
  return items.find((item) => item.name === name)
}
const codeOf = ({ status, body }: ApiResponse) => (status === 200 ? 'ok' : (body as { code: string }).code)
const refusal = (name: string) =>
  expect.objectContaining({ message: expect.stringMatching(`^quota exceeded: ${name} of the organization`) })

test('if several projects request the last GPU of their organization at the same time, exactly one gets it', async () => {
  await limit({ a40_gpus: 3, vms: 100 })
  const projects = await Promise.all(
    ['a', 'b', 'c'].map((name) => addProject(service, owner, organization_id, name)),
  )
  const create = (project_id: string, type: string) =>
    service.call('vmCreate', {
      token: owner,
      params: { project_id },
      body: vmBody({ type, public_ip: 'none' }),
    })
  const first = await create(projects[0]!, 'a40.2x')
  expect(codeOf(first)).toBe('ok')
  const race = await Promise.all(projects.map((id) => create(id, 'a40.1x')))
  expect(race.map(codeOf).toSorted()).toEqual(['ok', 'quota_exceeded', 'quota_exceeded'])
  expect(race.find(({ status }) => status === 403)!.body).toEqual(refusal('a40_gpus'))
  expect(await quota('a40_gpus')).toEqual({ name: 'a40_gpus', max: 3, used: 3, available: 0 })
  const { items } = await service.ok('quotaList', { token: owner, params: { project_id: projects[2]! } })
  expect(items.find(({ name }) => name === 'a40_gpus')!.available).toBe(0)
})

test('concurrent project creations stop at the organization quota, and work again after a project is deleted', async () => {
  await limit({ projects: 5 })
  const create = (index: number) =>
    service.call('projectCreate', { token: owner, body: { name: `more-${index}`, organization_id } })
  const responses = await Promise.all(Array.from({ length: 8 }, (_, index) => create(index)))
  expect(responses.map(codeOf).toSorted()).toEqual(['ok', 'ok', ...Array(6).fill('quota_exceeded')])
  expect(responses.find(({ status }) => status === 403)!.body).toEqual(refusal('projects'))
  const created = responses.find(({ status }) => status === 200)!
  await service.ok('projectDelete', { token: owner, params: { project_id: created.body.id } })
  expect((await create(9)).status).toBe(200)
})

test('the networks, subnets and rules that come with a project count towards the quotas', async () => {
  await limit({ projects: 100 })
  for (const name of ['networks', 'subnets', 'firewall_rules']) {
    const { used, max } = (await quota(name))!
    expect(used).toBeGreaterThan(0)
    await limit({ [name]: used })
    const body = { name: `no-${name}`, organization_id }
    const response = await service.call('projectCreate', { token: owner, body })
    expect(response).toMatchObject({ status: 403, body: refusal(name) })
    await limit({ [name]: max })
  }
})

async function addDisk(project_id: string, name: string): Promise<string> {
  const body = { name, size: '1GiB', location: 'us-east1-a' }
  const { operation } = await service.ok('diskCreate', { token: owner, params: { project_id }, body })
  const params = { project_id, operation_id: operation.operation_id }
  await service.ok('operationGet', { token: owner, params, query: { wait: 30 } })
  return operation.metadata.id
}

const groupMember = () => {
  const { name: _, ...vm } = vmBody({ public_ip: 'none' })
  return vm
}

test('networks, subnets, keys, SSH keys, members and webhooks are limited by the organization quota', async () => {
  const [project_id, other] = [
    await addProject(service, owner, organization_id, 'full'),
    await addProject(service, owner, organization_id, 'other'),
  ]
  await addKey(service, owner, other, 'read')
  const network = (await service.ok('networkList', { token: owner, params: { project_id } })).items[0]!
  const diskIds = await Promise.all(
    Array.from({ length: 6 }, (_, index) => addDisk(project_id, `copied-${index}`)),
  )
  let count = 0
  const makers: Record<string, () => Promise<ApiResponse>> = {
    networks: () =>
      service.call('networkCreate', {
        token: owner,
        params: { project_id },
        body: { name: `n-${++count}`, cidr: `10.${count}.0.0/16` },
      }),
    subnets: () =>
      service.call('subnetCreate', {
        token: owner,
        params: { project_id },
        body: {
          name: `s-${++count}`,
          cidr: `172.27.${200 + count}.0/24`,
          vpc_network_id: network.id,
          location: 'us-east1-a',
        },
      }),
    access_keys: () =>
      service.call('accessKeyCreate', {
        token: owner,
        params: { project_id },
        body: { name: `k-${++count}`, role: 'read' },
      }),
    ssh_keys: () =>
      service.call('sshKeyCreate', {
        token: owner,
        params: { project_id },
        body: { name: `ssh-${++count}`, public_key: sshKey },
      }),
    instance_groups: () =>
      service.call('instanceGroupCreate', {
        token: owner,
        params: { project_id },
        body: { name: `group-${++count}`, desired_count: 1, vm: groupMember() },
      }),
    instance_templates: () =>
      service.call('instanceTemplateCreate', {
        token: owner,
        params: { project_id },
        body: { name: `template-${++count}` },
      }),
    custom_images: () =>
      service.call('customImageCreate', {
        token: owner,
        params: { project_id },
        body: { name: `image-${++count}`, disk_id: diskIds.shift()! },
      }),
    snapshots: () =>
      service.call('snapshotCreate', {
        token: owner,
        params: { project_id },
        body: { name: `snapshot-${++count}`, disk_id: diskIds.shift()! },
      }),
    reserved_addresses: () =>
      service.call('addressCreate', {
        token: owner,
        params: { project_id },
        body: { name: `address-${++count}`, location: 'us-east1-a' },
      }),
    members: () =>
      service.call('memberCreate', {
        token: owner,
        params: { organization_id },
        body: { email: someEmail(), role: 'viewer' },
      }),
    'members, by an operator': () =>
      service.call('adminUserCreate', {
        token: service.credentials.operator_key,
        body: { email: someEmail(), organization_id, role: 'viewer' },
      }),
    webhooks: () =>
      service.call('webhookCreate', {
        token: owner,
        params: { project_id },
        body: { url: `http://127.0.0.1:9/${++count}` },
      }),
  }
  await limit({ a40_gpus: 100 })
  for (const [maker, make] of Object.entries(makers)) {
    const name = maker.split(',')[0]!
    const { used } = (await quota(name))!
    await limit({ [name]: used + 1 })
    const responses = await Promise.all([make(), make(), make()])
    expect(responses.map(codeOf).toSorted(), name).toEqual(['ok', 'quota_exceeded', 'quota_exceeded'])
    expect(responses.find(({ status }) => status === 403)!.body).toEqual(refusal(name))
    expect(await quota(name)).toMatchObject({ used: used + 1, available: 0 })
  }
})

test('the storage of images and snapshots is limited for the whole organization', async () => {
  await limit({ networks: 100, subnets: 100 })
  const project_id = await addProject(service, owner, organization_id, 'storage')
  await limit({ snapshots: 100, captured_gib: (await quota('captured_gib'))!.used + 1 })
  const diskIds = await Promise.all([1, 2, 3].map((index) => addDisk(project_id, `stored-${index}`)))
  const responses = await Promise.all(
    diskIds.map((disk_id, index) =>
      service.call('snapshotCreate', {
        token: owner,
        params: { project_id },
        body: { name: `stored-${index}`, disk_id },
      }),
    ),
  )
  expect(responses.map(codeOf).toSorted()).toEqual(['ok', 'quota_exceeded', 'quota_exceeded'])
  expect(responses.find(({ status }) => status === 403)!.body).toEqual(refusal('captured_gib'))
})

test('a new organization gets the quotas of the configuration', async () => {
  const { operator_key: token } = service.credentials
  const { id } = await service.ok('adminOrganizationCreate', { token, body: { name: 'Fresh' } })
  const params = { organization_id: id }
  const { items } = await service.ok('adminOrganizationQuotaList', { token, params })
  expect(Object.fromEntries(items.map(({ name, max }) => [name, max]))).toEqual(service.config.quotas)
  expect(new Set(items.map(({ used }) => used))).toEqual(new Set([0]))
})

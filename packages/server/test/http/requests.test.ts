import { ownerToken } from '@slipway/testing/people.ts'
import { sendRaw } from '@slipway/testing/requests.ts'
import { freshName, vmBody } from '@slipway/testing/resources.ts'
import { sshKey } from '@slipway/testing/ssh-key.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { refused, type Standing, startWithVm } from '../support/refused.ts'

let { service, resources, vmId } = {} as Standing
beforeAll(async () => {
  ;({ service, resources, vmId } = await startWithVm())
})
afterAll(() => service.close())

const projectPath = (rest: string) => `/v0.1/projects/${service.credentials.project_id}${rest}`

describe('an optional field that is null', () => {
  test('counts as absent, including inside lists and variants', async () => {
    const body = vmBody({
      startup_script: null,
      disks: null,
      subnet_id: null,
      ttl_seconds: null,
      on_expiry: null,
    })
    const { operation } = await service.ok('vmCreate', { body })
    expect(Object.keys(operation.metadata.request).toSorted()).toEqual(
      ['image', 'location', 'name', 'ssh_public_key', 'type'].toSorted(),
    )
    const id = await resources.succeeded({ operation })
    const disk_id = await resources.newDisk({ block_size: null, type: null })
    await resources.succeeded(
      await service.ok('vmCreate', {
        body: vmBody({ disks: [{ disk_id, attachment_type: null, mode: null }] }),
      }),
    )
    const stop = { action: 'STOP', type: null, ttl_seconds: null, on_expiry: null }
    await resources.succeeded(await resources.act(id, stop))
    const rule = await resources.ruleBody({
      sources: [{ cidr: '203.0.113.0/24', resource_id: null }],
      source_ports: null,
      destination_ports: null,
    })
    const ruleId = await resources.succeeded(await service.ok('firewallRuleCreate', { body: rule }))
    expect(await service.ok('firewallRuleGet', { params: { rule_id: ruleId } })).toMatchObject({
      sources: [{ cidr: '203.0.113.0/24', resource_id: '' }],
      destination_ports: [],
    })
  })
  test('is rejected if the field is required or unknown', async () => {
    expect(await service.call('vmCreate', { body: vmBody({ name: null }) })).toMatchObject(
      refused('/name', /must be a string/),
    )
    expect(await service.call('vmCreate', { body: vmBody({ colour: null }) })).toMatchObject(
      refused('/colour', /unknown.*supported: name, type/i),
    )
  })
})

describe('ids in upper case', () => {
  test('are found in paths, bodies and filters, and returned in lower case', async () => {
    const diskId = await resources.newDisk()
    const path = projectPath('').toUpperCase().replace('/V0.1/PROJECTS', '/v0.1/projects')
    const { body: vm } = await service.request('GET', `${path}/vms/${vmId.toUpperCase()}`)
    expect(vm).toMatchObject({ id: vmId, project_id: service.credentials.project_id })
    const listed = await service.ok('vmList', { query: { ids: vmId.toUpperCase() } })
    expect(listed.items.map(({ id }) => id)).toEqual([vmId])
    const accepted = await service.ok('vmAttachDisks', {
      params: { vm_id: vmId.toUpperCase() },
      body: {
        attach_disks: [{ disk_id: diskId.toUpperCase(), attachment_type: 'data', mode: 'read-write' }],
      },
    })
    expect(accepted.operation.metadata).toMatchObject({
      id: vmId,
      request: { attach_disks: [{ disk_id: diskId }] },
    })
    await resources.succeeded(accepted)
    expect((await service.ok('diskList', { query: { attached_to: vmId.toUpperCase() } })).items).toHaveLength(
      1,
    )
    const operations = await service.ok('vmOperationList', { query: { resource_id: vmId.toUpperCase() } })
    expect(operations.items.length).toBeGreaterThan(1)
    const events = await service.ok('eventList', { query: { resource_id: vmId.toUpperCase() } })
    expect(events.items.length).toBeGreaterThan(1)
    await resources.succeeded(
      await service.ok('vmDetachDisks', {
        params: { vm_id: vmId },
        body: { detach_disks: [diskId.toUpperCase()] },
      }),
    )
  })
  test('are stored in lower case in a firewall rule', async () => {
    const body = await resources.ruleBody({ destinations: [{ resource_id: vmId.toUpperCase() }] })
    body.vpc_network_id = body.vpc_network_id.toUpperCase()
    const { operation } = await service.ok('firewallRuleCreate', { body })
    expect(operation.metadata.request).toMatchObject({ destinations: [{ resource_id: vmId }] })
    const rule_id = await resources.succeeded({ operation })
    const rule = await service.ok('firewallRuleGet', { params: { rule_id } })
    expect(rule.destinations).toEqual([{ resource_id: vmId, cidr: '' }])
    const packet = { direction: 'ingress', protocol: 'tcp', source: '203.0.113.9', destination_port: 8888 }
    const response = await service.ok('firewallRuleTest', {
      body: { ...packet, destination: vmId.toUpperCase() },
    })
    expect(response.allowed).toBe(true)
    await resources.succeeded(await resources.removeRule(rule_id))
  })
  test('identify the same organization', async () => {
    const { organization_id } = service.credentials
    const params = { organization_id: organization_id.toUpperCase() }
    expect((await service.ok('organizationGet', { params })).id).toBe(organization_id)
    const owner = await ownerToken(service)
    const body = { name: 'shouted', organization_id: organization_id.toUpperCase() }
    expect((await service.ok('projectCreate', { body, token: owner })).organization_id).toBe(organization_id)
  })
  test('an Idempotency-Key matches the same request, regardless of id case and null optional fields', async () => {
    const headers = { 'idempotency-key': 'spelled' }
    const path = projectPath('/vms')
    const [body, nulled] = [vmBody({ name: 'spelled' }), vmBody({ name: 'spelled', public_ip: null })]
    const first = await service.request('POST', path, { body: JSON.stringify(body), headers })
    const again = await service.request('POST', `${path}/`, { body: JSON.stringify(nulled), headers })
    expect(again.headers.get('idempotency-replayed')).toBe('true')
    expect(again.body).toEqual(first.body)
    await resources.succeeded(first.body as never)
  })
})

describe('a path and its method', () => {
  const shape = (body: unknown) => (Array.isArray(body) ? 'list' : Object.keys(body as object).toSorted())

  test('a trailing slash in a path is ignored', async () => {
    for (const path of ['/v0.1', '/v0.1/projects', projectPath('/vms'), projectPath(`/vms/${vmId}`)]) {
      const [plain, slashed] = [await service.request('GET', path), await service.request('GET', `${path}/`)]
      expect([slashed.status, shape(slashed.body)], path).toEqual([200, shape(plain.body)])
    }
    expect((await service.request('GET', `${projectPath('/vms')}/?limit=1`)).status).toBe(200)
    const wrong = await service.request('DELETE', `${projectPath('/vms')}/`)
    expect([wrong.status, wrong.headers.get('allow')]).toEqual([405, 'POST, GET, HEAD'])
  })
  test('HEAD returns the headers of GET without a body, and never waits for a stream', async () => {
    // The cost of a VM grows, so its record may become longer.
    await service.clock.freeze(new Date().toISOString())
    for (const path of [
      projectPath('/vms'),
      projectPath(`/vms/${vmId}`),
      '/healthz',
      '/openapi.json',
      '/docs',
    ]) {
      const [got, head] = [await service.request('GET', path), await service.request('HEAD', path)]
      expect([head.status, head.body], path).toEqual([200, ''])
      for (const name of ['content-type', 'content-length'])
        expect(head.headers.get(name), name).toBe(got.headers.get(name))
    }
    await service.clock.reset()
    expect(
      (await service.request('HEAD', projectPath(`/vms/${service.credentials.project_id}`))).status,
    ).toBe(404)
    expect((await service.request('HEAD', projectPath('/vms'), { token: null })).status).toBe(401)
    const stream = [
      `HEAD ${projectPath('/events')} HTTP/1.1`,
      ...['Host: x', `Authorization: Bearer ${service.credentials.access_key}`, 'Accept: text/event-stream'],
      ...['Connection: close', '', ''],
    ]
    // There are more requests than a caller may have streams, which shows that HEAD keeps no stream open.
    for (let asked = 0; asked < 65; asked++) {
      const { status, headers, text } = await sendRaw(service.url, stream.join('\r\n'))
      expect([status, headers.get('content-type'), text]).toEqual([200, 'text/event-stream', ''])
    }
  })
})

describe('a filter', () => {
  test('that is empty counts as absent', async () => {
    const whole = (await service.ok('vmList')).items.map(({ id }) => id)
    expect(whole.length).toBeGreaterThan(0)
    for (const filter of [
      'names=',
      'ids=',
      'states=',
      'types=',
      'locations=',
      'names=,',
      'limit=',
      'page_token=',
    ]) {
      const { status, body } = await service.request('GET', projectPath(`/vms?${filter}`))
      expect([status, (body as { items: { id: string }[] }).items.map(({ id }) => id)], filter).toEqual([
        200,
        whole,
      ])
    }
    for (const path of [
      '/disks?attached_to=',
      '/operations?state=&resource_id=',
      '/events?type=',
      '/usage?location=',
    ])
      expect((await service.request('GET', projectPath(path))).status, path).toBe(200)
    const all = await service.ok('availabilityList', { query: { product_name: '' } })
    expect(all.items).toHaveLength((await service.ok('availabilityList')).items.length)
  })
  test.each([
    ['/vms?states=BOGUS', 'states', 'STATE_RUNNING'],
    ['/vms?states=STATE_RUNNING,RUNNING', 'states', 'STATE_UNREACHABLE'],
    ['/vms?types=a100.3x', 'types', 'a100.2x'],
    ['/vms?locations=us-east1-a,mars-a', 'locations', 'eu-north1-a'],
    ['/disks?types=tape', 'types', 'shared-volume'],
    ['/disks?locations=mars-a', 'locations', 'us-west1-a'],
    ['/operations?state=DONE', 'state', 'SUCCEEDED'],
    ['/events?type=vm.runing', 'type', 'vm.running'],
    ['/usage?location=mars-a', 'location', 'us-east1-a'],
    ['/usage?resource_type=gpu', 'resource_type', 'disk'],
  ])('with an unknown value, %s, is rejected with the supported values', async (path, field, known) => {
    const { status, body } = await service.request('GET', projectPath(path))
    expect([status, body]).toMatchObject([400, { code: 'invalid_argument', details: [{ field }] }])
    expect((body as { message: string }).message).toContain(known)
  })
  test('of hosts by an unknown location is rejected with the supported values', async () => {
    const token = service.credentials.operator_key
    const response = await service.call('adminHostList', { token, query: { location: 'mars-a' } })
    expect(response).toMatchObject(refused('location', /us-east1-a/))
  })
})

describe('keys, scripts and block sizes', () => {
  test.each(['\n', '\r\n'])(
    'an SSH key that ends with %j is accepted, returned as sent, and given to guests as one line',
    async (end) => {
      const ssh_public_key = `${sshKey}${end}`
      const accepted = await resources.createVm({ ssh_public_key })
      expect(accepted.operation.metadata.request).toMatchObject({ ssh_public_key })
      const id = await resources.succeeded(accepted)
      const [row] = await service.sql('SELECT ssh_public_keys FROM vms WHERE id = $1', [id])
      expect(row).toEqual({ ssh_public_keys: [sshKey] })
    },
  )
  test.each([
    ['without #!', 'echo hello\n'],
    ['that is empty', ''],
    ['with #!', '#!/bin/sh\necho hello\n'],
  ])('scripts %s are accepted and returned as sent', async (_name, script) => {
    const scripts = { startup_script: script, shutdown_script: script }
    const accepted = await resources.createVm(scripts)
    expect(accepted.operation.metadata.request).toMatchObject(scripts)
    await resources.succeeded(accepted)
  })
  test('#cloud-config is accepted only as a startup script and for images with cloud-init', async () => {
    const token = service.credentials.operator_key
    const cloud = { name: freshName('cloud'), locations: ['us-east1-a'], tags: ['cloud-init'] }
    const bare = { name: freshName('bare'), locations: ['us-east1-a'] }
    for (const body of [cloud, bare]) await service.ok('adminImageCreate', { token, body })
    const startup_script = '#cloud-config\npackages: [htop]\n'
    await resources.succeeded(await resources.createVm({ image: cloud.name, startup_script }))
    expect(
      await service.call('vmCreate', { body: vmBody({ image: bare.name, startup_script }) }),
    ).toMatchObject(refused('/startup_script', /cloud-init/))
    expect(
      await service.call('vmCreate', {
        body: vmBody({ image: cloud.name, shutdown_script: startup_script }),
      }),
    ).toMatchObject(refused('/shutdown_script', /only startup_script/))
  })
  test.each([
    ['persistent-ssd', '10GiB', undefined, 512],
    ['persistent-ssd', '10GiB', 4096, 4096],
    ['shared-volume', '1TiB', undefined, 0],
    ['shared-volume', '1TiB', 4096, 4096],
    ['shared-volume', '1TiB', 512, 512],
  ])('a %s of %s with block_size %s has %s', async (type, size, block_size, shown) => {
    const disk_id = await resources.newDisk({ type, size, block_size })
    expect((await service.ok('diskGet', { params: { disk_id } })).block_size).toBe(shown)
    await resources.ended(await resources.removeDisk(disk_id))
  })
})

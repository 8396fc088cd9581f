import type { RouteId } from '@slipway/contract'
import { freshName, vmBody } from '@slipway/testing/resources.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { refused, type Standing, startWithVm } from '../support/refused.ts'

let { service, resources, vmId } = {} as Standing
beforeAll(async () => {
  ;({ service, resources, vmId } = await startWithVm())
})
afterAll(() => service.close())

/** Returns whether the text contains no characters of regular expressions, which no message may contain. */
const isInWords = (text: string) => !/[\^$\\]|\(\?|\{\d/.test(text) && !text.includes('pattern')

describe('a refusal', () => {
  test.each([
    ['vmCreate', { name: 'train 7!' }, '/name', /letters, digits.*did you mean train-7\?/],
    ['vmCreate', { type: 'a100.3x' }, '/type', /must be one of .*did you mean a100\.\dx\?/],
    ['vmCreate', { location: 'us-east-1a' }, '/location', /must be one of .*did you mean us-east1-a\?/],
    ['vmCreate', { image: 'ubuntu24.04-nvidea' }, '/image', /did you mean ubuntu24.04-nvidia:latest\?/],
    ['vmCreate', { ttl_seconds: 5 }, '/ttl_seconds', /must be from 300 to 2592000/],
    ['vmCreate', { public_ip: 'static' }, '/public_ip', /must be one of dynamic, none/],
    ['vmCreate', { ssh_public_key: 'ssh-ed25519 AAAA' }, '/ssh_public_key', /not a valid public key/],
    ['vmCreate', { sshpublic_key: 'x' }, '/sshpublic_key', /did you mean ssh_public_key\?/i],
    ['vmCreate', { subnet_id: 'mine' }, '/subnet_id', /must be a UUID/],
    ['diskCreate', { size: '100GB' }, '/size', /whole number followed by GiB or TiB.*did you mean 100GiB\?/],
    ['diskCreate', { size: '0.5TiB' }, '/size', /did you mean 512GiB\?/],
    ['diskCreate', { block_size: 1024 }, '/block_size', /must be one of 512, 4096/],
    ['diskCreate', { type: 'ssd' }, '/type', /did you mean persistent-ssd\?/],
    [
      'firewallRuleCreate',
      { destination_ports: ['8080-3000'] },
      '/destination_ports/0',
      /did you mean 3000-8080\?/,
    ],
    [
      'firewallRuleCreate',
      { sources: [{ cidr: '10.1.2.3/8' }] },
      '/sources/0/cidr',
      /did you mean 10\.0\.0\.0\/8\?/,
    ],
    ['firewallRuleCreate', { sources: [{}] }, '/sources/0', /exactly one of cidr and resource_id/],
    ['networkCreate', { cidr: '10.20.1.0/16' }, '/cidr', /did you mean 10\.20\.0\.0\/16\?/],
  ] as const)('of %s with %j says in words what to do', async (id, changes, field, words) => {
    const whole = {
      vmCreate: vmBody(),
      diskCreate: { name: freshName('disk'), size: '10GiB', location: 'us-east1-a' },
      firewallRuleCreate: await resources.ruleBody(),
      networkCreate: { name: freshName('net'), cidr: '10.20.0.0/16' },
    }[id]
    const response = await service.call(id, { body: { ...whole, ...changes } })
    expect(response).toMatchObject(refused(field, words))
    expect(isInWords((response.body as unknown as { message: string }).message)).toBe(true)
  })
  test('of an update without a change lists everything that can be changed', async () => {
    const update = async (body: unknown) => {
      const response = await service.call('vmUpdate', { params: { vm_id: vmId }, body })
      return [response.status, (response.body as unknown as { message: string }).message]
    }
    const choice =
      'either exactly one of action, type, ttl_seconds, idle_policy, on_gpu_fault, or any of name, labels, description, deletion_protection.'
    expect(await update({})).toEqual([400, `Send ${choice}`])
    expect(await update({ colour: 1 })).toEqual([400, `Send ${choice}`])
    expect(await update({ action: 'STOP', type: 'a100.2x' })).toEqual([
      400,
      `action must not be sent with type: send ${choice}`,
    ])
    expect(await update({ action: 'PAUSE' })).toEqual([
      400,
      expect.stringMatching(/^action must be one of START, STOP, RESET, REPLACE\.?$/),
    ])
    const grant = await service.request('POST', '/v0.1/auth/token', { body: '{"grant_type": "pasword"}' })
    expect(grant).toMatchObject(refused('/grant_type', /password, refresh_token; did you mean password\?/))
  })
  test('of a disk to attach refers to the index in the list that was sent', async () => {
    const elsewhere = await resources.newDisk({ location: 'us-west1-a' })
    const here = await resources.newDisk()
    const attach = (...ids: string[]) =>
      service.call('vmAttachDisks', {
        params: { vm_id: vmId },
        body: {
          attach_disks: ids.map((disk_id) => ({ disk_id, attachment_type: 'data', mode: 'read-write' })),
        },
      })
    expect(await attach(here, elsewhere)).toMatchObject(refused('/attach_disks/1/disk_id', /us-west1-a/))
    expect(await attach(here, here)).toMatchObject(refused('/attach_disks/1/disk_id', /already in the list/))
    const body = vmBody({ disks: [{ disk_id: here }, { disk_id: elsewhere }] })
    expect(await service.call('vmCreate', { body })).toMatchObject(refused('/disks/1/disk_id', /us-west1-a/))
  })
})

describe('the order of checks', () => {
  const nowhere = '0199c6f2-9a1e-7c4b-8f51-6a2f0c1d7e10'
  const codeOf = async (id: RouteId, params: Record<string, string>, body: unknown) => {
    const response = await service.call(id, { params, body })
    return [response.status, (response.body as { code?: string }).code]
  }
  const attachment = { disk_id: nowhere, attachment_type: 'data', mode: 'read-write' }

  test('402 comes before 404 of a resource inside the project', async () => {
    const pay = async (state: string) => {
      const values = [service.credentials.organization_id, state]
      await service.sql('UPDATE organizations SET payment_state = $2 WHERE id = $1', values)
      service.server.services.signals.send('access')
    }
    await pay('declined')
    const start = await codeOf('vmUpdate', { vm_id: nowhere }, { action: 'START' })
    const stop = await codeOf('vmUpdate', { vm_id: nowhere }, { action: 'STOP' })
    const estimate = await codeOf('estimateCreate', {}, { vm: vmBody() })
    await pay('active')
    expect([start, stop, estimate]).toEqual([
      [402, 'payment_method_required'],
      [404, 'not_found'],
      [402, 'payment_method_required'],
    ])
  })
  test.each([
    ['vmUpdate', { type: 'bogus' }, { type: 'a100.2x' }],
    ['vmAttachDisks', { attach_disks: [attachment, attachment] }, { attach_disks: [attachment] }],
    ['firewallRuleUpdate', {}, { name: 'other' }],
    ['firewallRuleUpdate', { sources: [{}] }, { sources: [{ cidr: '10.0.0.0/8' }] }],
    ['firewallRuleUpdate', { source_ports: ['0'] }, { source_ports: ['1'] }],
    ['diskUpdate', { size: '10GB' }, { size: '10GiB' }],
  ] as const)(
    '400 of %s with %j comes before 404 of a resource inside the project',
    async (id, bad, good) => {
      const params = { vm_id: nowhere, rule_id: nowhere, disk_id: nowhere }
      expect(await codeOf(id, params, bad)).toEqual([400, 'invalid_argument'])
      expect(await codeOf(id, params, good)).toEqual([404, 'not_found'])
    },
  )
  test('a creation is checked for missing disks, then the name, then busy disks and stock, then the quota', async () => {
    const { project_id } = service.credentials
    const disk_id = await resources.newDisk({ location: 'eu-north1-a' })
    await resources.succeeded(await resources.createVm({ location: 'eu-north1-a', disks: [{ disk_id }] }))
    const place = { location: 'eu-north1-a', type: 'a100.1x' }
    const create = (changes: object) => codeOf('vmCreate', {}, vmBody({ ...place, ...changes }))
    const taken = { name: 'standing' }
    expect(await create({ ...taken, disks: [{ disk_id: nowhere }] })).toEqual([404, 'not_found'])
    expect(await create({ ...taken, disks: [{ disk_id }] })).toEqual([409, 'already_exists'])
    expect(await create({ disks: [{ disk_id }] })).toEqual([409, 'conflict'])

    const fleet = (isOpen: boolean) =>
      service.sql(`UPDATE hosts SET is_schedulable = $1 WHERE location = 'eu-north1-a'`, [isOpen])
    const quota = (name: string) =>
      service.sql<{ max: number }>(
        `UPDATE quotas q SET max = CASE WHEN max = 0 THEN 1000 ELSE 0 END WHERE project_id = $1 AND name = $2`,
        [project_id, name],
      )
    await fleet(false)
    await quota('vms')
    expect(await create(taken)).toEqual([409, 'already_exists'])
    expect(await create({})).toEqual([409, 'out_of_stock'])
    await fleet(true)
    expect(await create(taken)).toEqual([409, 'already_exists'])
    expect(await create({})).toEqual([403, 'quota_exceeded'])
    await quota('vms')
  })
  test('a rule update is checked for validity, then the name, then operations in progress', async () => {
    const rule_id = await resources.newRule()
    const { name } = await service.ok('firewallRuleGet', { params: { rule_id: await resources.newRule() } })
    await service.sql(
      `INSERT INTO operation_queue (operation_id, project_id, resource_id, is_deletion, location, run_at)
       SELECT id, project_id, resource_id, false, location, slipway_now() + interval '1 day' FROM operations
       WHERE resource_id = $1`,
      [rule_id],
    )
    const change = (body: object) => codeOf('firewallRuleUpdate', { rule_id }, body)
    expect(await change({ name, sources: [{ resource_id: nowhere }] })).toEqual([400, 'invalid_argument'])
    expect(await change({ name })).toEqual([409, 'already_exists'])
    expect(await change({ name: freshName('rule') })).toEqual([409, 'conflict'])
    await service.sql('DELETE FROM operation_queue WHERE resource_id = $1', [rule_id])
  })
})

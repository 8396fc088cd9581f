import type { RouteId } from '@slipway/contract'
import { eventually } from '@slipway/testing/eventually.ts'
import { ownerToken } from '@slipway/testing/people.ts'
import { freshName, resourcesOf } from '@slipway/testing/resources.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'

let service: TestService
let owner: string
let resources: ReturnType<typeof resourcesOf>
const labels = { team: 'ml', 'example.com/stage': 'test' }

beforeAll(async () => {
  service = await startService()
  owner = await ownerToken(service)
  resources = resourcesOf(service)
})
afterAll(() => service.close())

/** How each kind of resource with labels is created, listed, updated and read. */
interface Labeled {
  list: RouteId
  update: RouteId
  get: RouteId
  param: string
  create(given: Record<string, unknown>): Promise<string>
}

let blocks = 10
const kinds: Record<string, Labeled> = {
  disk: {
    ...{ list: 'diskList', update: 'diskUpdate', get: 'diskGet', param: 'disk_id' },
    create: (given) => resources.newDisk(given),
  },
  'firewall rule': {
    ...{
      list: 'firewallRuleList',
      update: 'firewallRuleUpdate',
      get: 'firewallRuleGet',
      param: 'rule_id',
    },
    create: (given) => resources.newRule(given),
  },
  network: {
    ...{ list: 'networkList', update: 'networkUpdate', get: 'networkGet', param: 'network_id' },
    create: async (given) => {
      const body = { name: freshName('net'), cidr: `10.${++blocks}.0.0/16`, ...given }
      return (await service.ok('networkCreate', { body })).id
    },
  },
  project: {
    ...{ list: 'projectList', update: 'projectUpdate', get: 'projectGet', param: 'project_id' },
    create: async (given) => {
      const { organization_id } = service.credentials
      const body = { name: freshName('project'), organization_id, ...given }
      return (await service.ok('projectCreate', { body, token: owner })).id
    },
  },
} satisfies Record<string, Labeled>

const tokenFor = (kind: Labeled) => (kind.list === 'projectList' ? { token: owner } : {})

async function namesWith(kind: Labeled, label_selector: string): Promise<string[]> {
  const response = await service.ok(kind.list, { query: { label_selector }, ...tokenFor(kind) })
  const items = (Array.isArray(response) ? response : (response as { items: unknown[] }).items) as {
    name: string
  }[]
  return items.map(({ name }) => name).sort()
}

test.each(Object.keys(kinds))(
  'a %s can be found by its labels, and an update replaces all of them',
  async (name) => {
    const kind = kinds[name]!
    const [one, two] = [freshName('one'), freshName('two')]
    const id = await kind.create({ name: one, labels })
    await kind.create({ name: two, labels: { team: 'web', old: '' } })
    const read = async () =>
      (await service.ok(kind.get, { params: { [kind.param]: id }, ...tokenFor(kind) })) as { labels: unknown }
    expect((await read()).labels).toEqual(labels)

    expect(await namesWith(kind, 'team=ml')).toEqual([one])
    expect(await namesWith(kind, 'team=ml,example.com/stage!=test')).toEqual([])
    expect(await namesWith(kind, 'team,!old')).toEqual([one])
    expect(await namesWith(kind, 'team, old')).toEqual([two])
    expect(await namesWith(kind, 'team=ml,team=web')).toEqual([])
    expect(await namesWith(kind, 'team!=ml')).toContain(two)
    expect(await namesWith(kind, 'team!=ml')).not.toContain(one)
    expect(await namesWith(kind, '!team')).not.toContain(two)

    const change = { labels: { stage: 'prod' } }
    const changed = await service.ok(kind.update, {
      params: { [kind.param]: id },
      body: change,
      ...tokenFor(kind),
    })
    if ('operation' in (changed as object)) await resources.succeeded(changed as never)
    expect((await read()).labels).toEqual({ stage: 'prod' })
    expect(await namesWith(kind, 'team=ml')).toEqual([])
    expect(await namesWith(kind, 'stage')).toEqual([one])
  },
)

test.each([
  [{ Team: 'ml' }, '/labels/Team', /lower-case letters/],
  [{ 'a/': 'x' }, '/labels/a~1', /begin and end with a letter or digit/],
  [{ ['k'.repeat(64)]: 'x' }, `/labels/${'k'.repeat(64)}`, /at most 63/],
  [{ '': 'x' }, '/labels/', /lower-case letters/],
  [{ team: 'm l' }, '/labels/team', /letters, digits/],
  [{ team: 'v'.repeat(64) }, '/labels/team', /at most 63/],
  [{ team: 5 }, '/labels/team', /must be a string/],
  [{ team: null }, '/labels/team', /must be a string/],
  [Object.fromEntries(Array.from({ length: 33 }, (_, n) => [`k${n}`, ''])), '/labels', /at most 32/],
  [['team=ml'], '/labels', /an object/],
])('labels such as %j are rejected, and the error names the field', async (given, field, message) => {
  const body = { name: freshName('disk'), size: '1GiB', location: 'us-east1-a', labels: given }
  const response = await service.call('diskCreate', { body })
  expect(response).toMatchObject({ status: 400, body: { details: [{ field }] } })
  expect((response.body as unknown as { details: { message: string }[] }).details[0]!.message).toMatch(
    message,
  )
})

test.each(['team=', '=ml', 'a=b=c', '!a=b', 'Team', 'a,,b', 'team in (ml)', '!'])(
  'the selector %j is either applied completely or rejected',
  async (label_selector) => {
    const response = await service.call('diskList', { query: { label_selector } })
    if (label_selector === 'team=') expect(response.status).toBe(200)
    else expect(response).toMatchObject({ status: 400, body: { details: [{ field: 'label_selector' }] } })
  },
)

test('every event of a resource contains the labels that it had at the time', async () => {
  const id = await resources.newDisk({ labels })
  await service.ok('diskUpdate', { params: { disk_id: id }, body: { labels: { team: 'web' } } })
  await resources.succeeded(await resources.removeDisk(id))
  const events = async () => (await service.ok('eventList', { query: { resource_id: id } })).items
  await eventually(async () => (await events()).some(({ type }) => type === 'disk.deleted'))
  const diskEvents = (await events()).filter(({ type }) => type.startsWith('disk.')).reverse()
  expect(diskEvents.map(({ type, data }) => [type, data.labels])).toEqual([
    ['disk.creating', labels],
    ['disk.available', labels],
    ['disk.updated', { team: 'web' }],
    ['disk.deleting', { team: 'web' }],
    ['disk.deleted', { team: 'web' }],
  ])
})

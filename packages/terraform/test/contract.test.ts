import { type RouteId, routeIds, routes } from '@slipway/contract'
import { describe, expect, test } from 'vitest'
import { schemaOf } from '../src/engine/resource.ts'
import { dataSources, resources } from '../src/resources/index.ts'
import { type ContractSchema, membersOf } from '../src/schema/from-contract.ts'

/** The create routes of the API for which the provider has no resource, each with the reason. */
const withoutResource: Partial<Record<RouteId, string>> = {
  capacityRequestCreate: 'A capacity request ends when it is granted, so there is nothing to manage.',
  memberCreate: 'A person joins an organization by accepting an invitation.',
  quotaRequestCreate: 'A quota request ends when an operator decides on it, so there is nothing to manage.',
  organizationKeyCreate: 'The provider itself needs such a key, and manages only the keys of projects.',
}

/** Fields of update requests that are commands, not values. */
const commands = ['action', 'reservation_id']

test('there is a resource for everything that a tenant can create and delete, or a reason why there is none', () => {
  const created = resources.map(({ routes: ids }) => ids.create!)
  const creations = routeIds.filter(
    (id) =>
      id.endsWith('Create') &&
      !id.startsWith('admin') &&
      (id.replace(/Create$/, 'Delete') as RouteId) in routes,
  )
  expect(creations.filter((id) => !created.includes(id) && !withoutResource[id])).toEqual([])
  expect(resources.length).toBeGreaterThanOrEqual(12)
})

describe.each(resources.map((resource) => [resource.row.name, resource] as const))(
  'slipway_%s',
  (_, resource) => {
    const { row, attributes, routes: ids, recordMembers } = resource
    const names = new Set(attributes.map(({ name }) => name))
    const bodies = [ids.create, ids.update]
      .filter((id) => id !== undefined)
      .map((id) => membersOf(schemaOf(id, 'body')))
    const hasType = ([, schema]: [string, ContractSchema]) => schema.type ?? schema.enum ?? schema.anyOf

    test('has an attribute for every field of the contract, or a reason why there is none', () => {
      const inputs = bodies.flatMap((members) =>
        Object.entries(members)
          .filter(hasType)
          .map(([name]) => name),
      )
      const wanted = new Set([...inputs, ...recordMembers].filter((name) => !commands.includes(name)))
      expect([...wanted].filter((name) => !names.has(name) && !row.omitted?.[name])).toEqual([])
    })

    test('has settings only for attributes and fields that exist', () => {
      const known = new Set([
        ...names,
        ...recordMembers,
        ...bodies.flatMap((members) => Object.keys(members)),
      ])
      const used = [
        ...Object.keys(row.omitted ?? {}),
        ...Object.keys(row.defaults ?? {}),
        ...Object.keys(row.equivalent ?? {}),
        ...[row.fixed, row.related, row.kept, row.derived, row.sensitive, row.inPlace, row.refreshed].flatMap(
          (list) => list ?? [],
        ),
      ]
      expect(used.filter((name) => !known.has(name))).toEqual([])
    })
  },
)

test('secrets and scripts are sensitive', () => {
  const all = resources.flatMap(({ attributes }) => attributes)
  const secret = all.filter(({ name }) => /^secret$|_script$/.test(name))
  expect(secret.length).toBeGreaterThanOrEqual(6)
  expect(secret.filter(({ isSensitive }) => !isSensitive)).toEqual([])
})

test('every resource has a data source, and the catalogue has four', () => {
  const names = dataSources.map(({ name }) => name)
  expect(names).toEqual(['offers', 'images', 'locations', 'types', ...resources.map(({ row }) => row.name)])
})

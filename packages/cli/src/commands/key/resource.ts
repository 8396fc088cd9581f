import type { AccessKey } from '@slipway/sdk'
import { ageColumn, idColumn, ownName, type Resource } from '../../core/resource.ts'
import { ageOf } from '../../output/text.ts'

export const accessKeys: Resource<AccessKey> = {
  noun: 'key',
  title: 'access key',
  example: 'ci',
  otherExample: 'dashboard',
  columns: [
    { name: 'name', value: (key) => key.name },
    { name: 'role', value: (key) => key.role },
    { name: 'kind', value: (key) => key.kind, hideOrder: 5 },
    { name: 'prefix', value: (key) => key.prefix },
    { name: 'expires', value: (key) => (key.expires_at ? `in ${ageOf(key.expires_at)}` : ''), hideOrder: 2 },
    {
      name: 'last_used',
      value: (key) => (key.last_used_at ? `${ageOf(key.last_used_at)} ago` : 'never'),
      hideOrder: 3,
    },
    ageColumn,
    { name: 'parent_id', value: (key) => key.parent_id, hideOrder: 4 },
    idColumn,
  ],
  route: 'accessKeyList',
  list: async (cli) => cli.client.collect('accessKeyList', { project_id: await cli.project() }),
  named: ownName,
}

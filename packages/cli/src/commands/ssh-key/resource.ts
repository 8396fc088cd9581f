import type { ListItem } from '@slipway/sdk'
import { ageColumn, idColumn, ownName, type Resource } from '../../core/resource.ts'

export const sshKeys: Resource<ListItem<'sshKeyList'>> = {
  noun: 'ssh-key',
  title: 'SSH key',
  example: 'laptop',
  otherExample: 'desktop',
  columns: [
    { name: 'name', value: (key) => key.name },
    { name: 'type', value: (key) => key.type, hideOrder: 2 },
    { name: 'fingerprint', value: (key) => key.fingerprint },
    ageColumn,
    idColumn,
    { name: 'public_key', value: (key) => key.public_key, isExtra: true },
  ],
  route: 'sshKeyList',
  list: async (cli) => cli.client.collect('sshKeyList', { project_id: await cli.project() }),
  named: ownName,
}

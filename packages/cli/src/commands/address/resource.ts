import type { Address } from '@slipway/sdk'
import { labelsColumn } from '../../core/labels.ts'
import { ageColumn, idColumn, ownName, type Resource } from '../../core/resource.ts'
import { namesById } from '../resource-names.ts'

/** An address with the name of its VM. */
type ListedAddress = Address & { vm?: string }

export const addresses: Resource<ListedAddress> = {
  noun: 'address',
  title: 'reserved address',
  example: 'gateway',
  otherExample: 'proxy',
  columns: [
    { name: 'name', value: (address) => address.name },
    { name: 'address', value: (address) => address.address },
    { name: 'location', value: (address) => address.location },
    { name: 'vm', value: ({ vm, vm_id }) => vm ?? vm_id },
    ageColumn,
    idColumn,
    labelsColumn,
  ],
  route: 'addressList',
  list: async (cli) => cli.client.collect('addressList', { project_id: await cli.project() }),
  named: ownName,
}

export async function listWithVms(cli: Parameters<typeof addresses.list>[0]): Promise<ListedAddress[]> {
  const [rows, names] = await Promise.all([addresses.list(cli), namesById(cli)])
  return rows.map((row) => {
    const vm = names.get(row.vm_id)
    return vm === undefined ? row : { ...row, vm }
  })
}

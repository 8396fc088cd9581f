import { command, type GroupSpec } from '../../../core/command.ts'
import { listCommand } from '../../../core/generic-commands.ts'
import { printOne } from '../../../output/print.ts'
import { deleteKeyCommand } from '../../key/delete.ts'
import { type KeyFlags, keyLimits, keyOptions } from '../../key/options.ts'
import { accessKeys } from '../../key/resource.ts'

const operatorKeys = {
  ...accessKeys,
  title: 'operator key',
  example: 'ops',
  otherExample: 'billing',
  route: 'adminKeyList',
  list: (cli) => cli.operator.collect('adminKeyList', {}),
} satisfies typeof accessKeys

const create = command<{ name: string } & KeyFlags>({
  name: 'create',
  summary: 'create an operator key',
  arguments: [{ syntax: '<name>', description: 'name of the key' }],
  options: keyOptions,
  examples: ['slipway admin key create ops --expires 90d --allow 203.0.113.0/24'],
  async run(cli, { name, ...limits }) {
    await printOne(cli, await cli.operator.adminKeyCreate({ name, ...keyLimits(limits) }))
    cli.note('Save the secret. It is shown only once.')
  },
})

export const adminKey: GroupSpec = {
  name: 'key',
  summary: 'operator keys',
  commands: [
    listCommand(operatorKeys, { group: 'admin' }),
    create,
    deleteKeyCommand(operatorKeys, (cli, target) => cli.operator.adminKeyDelete(target), 'admin'),
  ],
}

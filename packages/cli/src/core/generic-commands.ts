import { printList, printOne } from '../output/print.ts'
import { confirmLoss } from './ask.ts'
import type { Cli } from './cli.ts'
import { type AnyCommand, command, type OptionSpec } from './command.ts'
import { pluralOf } from './names.ts'
import { follow, type WaitFlags, waitOptions } from './progress.ts'
import { idOf, type Listable, type Resource, refArgument } from './resource.ts'

/** Returns an example command line. `group` is the part before the noun. */
const line = (resource: { noun: string }, group: string, rest: string) =>
  `slipway ${group ? `${group} ` : ''}${resource.noun} ${rest}`

interface GenericOptions {
  group?: string
  examples?: string[]
}

export function listCommand<T extends object, Input extends object = object>(
  resource: Listable<T>,
  more: GenericOptions & {
    options?: OptionSpec[]
    list?: (cli: Cli, input: Input) => Promise<T[]>
  } = {},
): AnyCommand {
  return command<Input>({
    name: 'list',
    summary: `list ${pluralOf(resource.title)}`,
    options: more.options ?? [],
    columns: resource.columns,
    examples: [
      line(resource, more.group ?? '', 'list'),
      line(resource, more.group ?? '', 'list -o json'),
      ...(more.examples ?? []),
    ],
    async run(cli, input) {
      const rows = more.list ? await more.list(cli, input) : await resource.list(cli)
      await printList(cli, rows, resource.columns, resource.route)
    },
  })
}

export function showCommand<T extends object>(
  resource: Resource<T>,
  get: (cli: Cli, id: string) => Promise<T>,
  more: GenericOptions = {},
): AnyCommand {
  return command<{ ref: string }>({
    name: 'show',
    summary: `show one ${resource.title}`,
    arguments: [refArgument(resource)],
    examples: [line(resource, more.group ?? '', `show ${resource.example}`), ...(more.examples ?? [])],
    async run(cli, { ref }) {
      const found = await get(cli, await idOf(cli, resource, ref))
      await printOne(cli, found, resource.fields, resource.columns)
    },
  })
}

interface Deletion {
  /** The operation if the deletion continues in the background; undefined if it is complete. */
  operation?: Parameters<typeof follow>[2]
}

/** Deletes one or more resources, after a confirmation unless `--yes` is given. */
export function deleteCommand<T extends object, Input extends object = object>(
  resource: Resource<T>,
  remove: (cli: Cli, id: string, input: Input) => Promise<Deletion>,
  more: GenericOptions & {
    /** What is lost and what is kept, for the confirmation. */
    loses?: string
    /** For a resource that is removed from this place, but still exists elsewhere. */
    removesFrom?: string
    isOperation?: boolean
    options?: OptionSpec[]
  } = {},
): AnyCommand {
  const { removesFrom } = more
  const { example, otherExample } = resource
  const argument = refArgument(resource)
  return command<{ refs: string[]; yes?: boolean } & WaitFlags & Input>({
    name: 'delete',
    summary: removesFrom
      ? `remove ${pluralOf(resource.title)} from ${removesFrom}`
      : `delete ${pluralOf(resource.title)}`,
    arguments: [
      {
        ...argument,
        syntax: `<${resource.noun}...>`,
        key: 'refs',
        description: `${argument.description}; several can be given, separated by spaces`,
      },
    ],
    options: [
      { flags: '-y, --yes', description: 'skip the confirmation' },
      ...(more.options ?? []),
      ...(more.isOperation ? waitOptions : []),
    ],
    examples: [
      line(resource, more.group ?? '', `delete ${example}`),
      line(resource, more.group ?? '', `delete ${example} --yes`),
      ...(otherExample ? [line(resource, more.group ?? '', `delete ${example} ${otherExample}`)] : []),
    ],
    async run(cli, input) {
      const { refs, yes } = input
      const ids = await Promise.all(refs.map((ref) => idOf(cli, resource, ref)))
      const what =
        refs.length === 1 ? refs[0] : `${refs.length} ${pluralOf(resource.title)} (${refs.join(', ')})`
      await confirmLoss(
        cli,
        `${removesFrom ? `Remove ${what} from ${removesFrom}?` : `Delete ${what}?`}${more.loses ? ` ${more.loses}` : ''}`,
        yes,
      )
      for (const [index, id] of ids.entries()) {
        const { operation } = await remove(cli, id, input)
        if (operation) await follow(cli, `Deleting ${refs[index]}`, operation, input)
        else cli.note(`${removesFrom ? 'Removed' : 'Deleted'} ${refs[index]}.`)
      }
    },
  })
}

import { isUuid } from '@slipway/contract/names'
import { type Column, printList, printOne } from '../output/print.ts'
import { confirmLoss } from './ask.ts'
import type { Cli } from './cli.ts'
import { type AnyCommand, command, type OptionSpec, type ResourceNoun } from './command.ts'
import { type Named, resolveAmong } from './names.ts'
import { follow, type WaitFlags, waitOptions } from './progress.ts'

/** A kind of thing that has names. */
export interface Resolvable<T> {
  /** This is what a sentence calls one of them: `firewall rule`. */
  title: string
  /** With a name, the service may return only what has it. */
  list(cli: Cli, filter?: { names?: string }): Promise<T[]>
  named(thing: T): Named
}

/** Returns the id of what a person names. An id is taken as it is; a name costs one request. */
export async function idOf<T>(cli: Cli, kind: Resolvable<T>, wanted: string): Promise<string> {
  if (isUuid(wanted)) return wanted
  const matches = await kind.list(cli, { names: wanted })
  if (matches.some((thing) => kind.named(thing).name === wanted)) {
    return resolveAmong(kind.title, wanted, matches, kind.named).id
  }
  return resolveAmong(kind.title, wanted, await kind.list(cli), kind.named).id
}

/** What the generic verbs know of a kind of thing. */
export interface Resource<T extends object> extends Resolvable<T> {
  noun: ResourceNoun
  columns: Column<T>[]
  /** The name that examples use. */
  example?: string
  fields?: (thing: T) => [label: string, value: string][]
}

/** An example always shows the whole command line; `group` is the words in front of the verb. */
const line = (resource: { noun: string }, group: string, rest: string) =>
  `slipway ${group ? `${group} ` : ''}${resource.noun} ${rest}`

interface GenericOptions {
  group?: string
  examples?: string[]
}

export function listCommand<T extends object, Input extends object = object>(
  resource: Resource<T>,
  more: GenericOptions & {
    options?: OptionSpec[]
    list?: (cli: Cli, input: Input) => Promise<T[]>
  } = {},
): AnyCommand {
  return command<Input>({
    name: 'list',
    summary: `list ${resource.title}s`,
    options: more.options ?? [],
    examples: [
      line(resource, more.group ?? '', 'list'),
      line(resource, more.group ?? '', 'list -o json'),
      ...(more.examples ?? []),
    ],
    async run(cli, input) {
      const rows = more.list ? await more.list(cli, input) : await resource.list(cli)
      await printList(cli, rows, resource.columns)
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
    examples: [line(resource, more.group ?? '', `show ${exampleName(resource)}`), ...(more.examples ?? [])],
    async run(cli, { ref }) {
      await printOne(cli, await get(cli, await idOf(cli, resource, ref)), resource.fields)
    },
  })
}

interface Deletion {
  /** The answer of a deletion that goes on in the background; nothing for one that is done at once. */
  operation?: Parameters<typeof follow>[2]
}

/** Asks unless `--yes`; several may be named at once. */
export function deleteCommand<T extends object>(
  resource: Resource<T>,
  remove: (cli: Cli, id: string) => Promise<Deletion>,
  more: GenericOptions & { loses?: string; isOperation?: boolean } = {},
): AnyCommand {
  return command<{ refs: string[]; yes?: boolean } & WaitFlags>({
    name: 'delete',
    summary: `delete ${resource.title}s`,
    arguments: [{ ...refArgument(resource), syntax: `<${resource.noun}...>`, key: 'refs' }],
    options: [{ flags: '-y, --yes', description: 'do not ask' }, ...(more.isOperation ? waitOptions : [])],
    examples: [
      line(resource, more.group ?? '', `delete ${exampleName(resource)}`),
      line(resource, more.group ?? '', `delete ${exampleName(resource)} --yes`),
    ],
    async run(cli, { refs, yes, ...wait }) {
      const ids = await Promise.all(refs.map((ref) => idOf(cli, resource, ref)))
      const what = refs.length === 1 ? refs[0] : `${refs.length} ${resource.title}s (${refs.join(', ')})`
      await confirmLoss(cli, `Delete ${what}?${more.loses ? ` ${more.loses}` : ''}`, yes)
      for (const [index, id] of ids.entries()) {
        const { operation } = await remove(cli, id)
        if (operation) await follow(cli, `Deleting ${refs[index]}`, operation, wait)
        else cli.note(`Deleted ${refs[index]}.`)
      }
    },
  })
}

export function refArgument<T extends object>(resource: Resource<T>) {
  return {
    syntax: `<${resource.noun}>`,
    key: 'ref',
    description: `name or id of the ${resource.title}`,
    complete: resource.noun,
  }
}

const exampleName = <T extends object>(resource: Resource<T>) => resource.example ?? 'NAME'

import { type Column, printList, printOne } from '../output/print.ts'
import { confirmLoss } from './ask.ts'
import type { Cli } from './cli.ts'
import { type AnyCommand, type Completion, command, type OptionSpec } from './command.ts'
import { idOf, type Named } from './names.ts'
import { follow, type WaitFlags, waitOptions } from './progress.ts'

/** What the generic verbs know of a kind of thing. */
export interface Resource<T extends object> {
  noun: string
  /** As in a sentence: `firewall rule`. */
  title: string
  columns: Column<T>[]
  complete: Completion
  list(cli: Cli, filter?: { names?: string }): Promise<T[]>
  named(thing: T): Named
  fields?: (thing: T) => [label: string, value: string][]
}

/** An example always shows the whole command line; `group` is the words in front of the verb. */
const line = (resource: { noun: string }, group: string, rest: string) =>
  `slipway ${group ? `${group} ` : ''}${resource.noun} ${rest}`

export interface GenericOptions {
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
    complete: resource.complete,
  }
}

const exampleNames: Partial<Record<Completion, string>> = {
  vm: 'train-7',
  disk: 'datasets',
  network: 'training',
  subnet: 'training-a',
  firewall: 'allow-jupyter',
  key: 'ci',
  member: 'ada@example.com',
  project: 'research',
  org: 'harbour-labs',
  webhook: 'https://hooks.example.com/slipway',
  image: 'ubuntu24.04-nvidia:latest',
  host: 'us-east1-a-a100-1',
  user: 'ada@example.com',
}
const exampleName = <T extends object>(resource: Resource<T>) => exampleNames[resource.complete] ?? 'NAME'

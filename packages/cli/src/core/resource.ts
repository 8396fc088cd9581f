import { isUuid } from '@slipway/contract/names'
import type { ListId } from '@slipway/sdk'
import type { Column } from '../output/print.ts'
import { ageOf } from '../output/text.ts'
import type { Cli } from './cli.ts'
import type { ArgumentSpec, ResourceNoun } from './command.ts'
import { type Named, resolveAmong } from './names.ts'

/** A kind of resource that can be found by name. */
export interface Resolvable<T> {
  /** The singular noun for messages, such as `firewall rule`. */
  title: string
  /** With `names`, the result may be limited to resources with these names. */
  list(cli: Cli, filter?: { names?: string; label_selector?: string | undefined }): Promise<T[]>
  named(item: T): Named
}

/** Returns the id of the resource with this name or id. Resolving a name usually takes one request. */
export async function idOf<T>(cli: Cli, kind: Resolvable<T>, wanted: string): Promise<string> {
  if (isUuid(wanted)) return wanted
  const matches = await kind.list(cli, { names: wanted })
  if (matches.some((item) => kind.named(item).name === wanted)) {
    return resolveAmong(kind.title, wanted, matches, kind.named).id
  }
  return resolveAmong(kind.title, wanted, await kind.list(cli), kind.named).id
}

/** The data for the generic `list` command. */
export interface Listable<T extends object> {
  noun: string
  /** The singular noun for messages, such as `firewall rule`. */
  title: string
  columns: Column<T>[]
  /** The route of the list. Its schema determines which fields `-o columns=…` accepts. */
  route: ListId
  list(cli: Cli): Promise<T[]>
}

/** The data for all generic commands. */
export interface Resource<T extends object> extends Listable<T>, Resolvable<T> {
  noun: ResourceNoun
  /** The name that examples use. */
  example: string
  /** A second name, for examples with several resources. */
  otherExample?: string
  /** The name of an argument that identifies the resource, if it is not the noun. */
  argumentName?: string
  /** How an argument identifies the resource, if not by `name or id of the …`. */
  reference?: string
  list: Resolvable<T>['list']
  fields?: (item: T) => [label: string, value: string][]
}

/** The `named` function of resources that have an id and a name. */
export const ownName = (item: { id: string; name: string }): Named => item

export const idColumn = { name: 'id', value: (item: { id: string }) => item.id, isExtra: true } as const

export const ageColumn = {
  name: 'age',
  value: (item: { created_at: string }) => ageOf(item.created_at),
  align: 'right',
  hideOrder: 1,
} as const

/** Returns the argument that identifies a resource. */
export function refArgument<T extends object>(resource: Resource<T>): ArgumentSpec {
  return {
    syntax: `<${resource.argumentName ?? resource.noun}>`,
    key: 'ref',
    description: resource.reference ?? `name or id of the ${resource.title}`,
    complete: resource.noun,
  }
}

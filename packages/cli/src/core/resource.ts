import { isUuid } from '@slipway/contract/names'
import type { ListId } from '@slipway/sdk'
import type { Column } from '../output/print.ts'
import { ageOf } from '../output/text.ts'
import type { Cli } from './cli.ts'
import type { ArgumentSpec, ResourceNoun } from './command.ts'
import { type Named, resolveAmong } from './names.ts'

/** A kind of resource that has names. */
export interface Resolvable<T> {
  /** This is what a sentence calls one of them: `firewall rule`. */
  title: string
  /** With `names`, the service may return only resources with these names. */
  list(cli: Cli, filter?: { names?: string; label_selector?: string | undefined }): Promise<T[]>
  named(thing: T): Named
}

/** Returns the id of the resource with this name or id. A name needs one request. */
export async function idOf<T>(cli: Cli, kind: Resolvable<T>, wanted: string): Promise<string> {
  if (isUuid(wanted)) return wanted
  const matches = await kind.list(cli, { names: wanted })
  if (matches.some((thing) => kind.named(thing).name === wanted)) {
    return resolveAmong(kind.title, wanted, matches, kind.named).id
  }
  return resolveAmong(kind.title, wanted, await kind.list(cli), kind.named).id
}

/** What the generic `list` command needs to know about a noun. */
export interface Listable<T extends object> {
  noun: string
  /** This is what a sentence calls one of them: `firewall rule`. */
  title: string
  columns: Column<T>[]
  /** The route of the list; its records say which members `-o columns=…` may name. */
  route: ListId
  list(cli: Cli): Promise<T[]>
}

/** What the generic commands need to know about a noun. */
export interface Resource<T extends object> extends Listable<T>, Resolvable<T> {
  noun: ResourceNoun
  /** The name that examples use. */
  example: string
  list: Resolvable<T>['list']
  fields?: (thing: T) => [label: string, value: string][]
}

/** Returns the names of a resource that has an id and a name. */
export const ownName = (thing: { id: string; name: string }): Named => thing

export const idColumn = { name: 'id', value: (thing: { id: string }) => thing.id, isExtra: true } as const

export const ageColumn = {
  name: 'age',
  value: (thing: { created_at: string }) => ageOf(thing.created_at),
  align: 'right',
  spare: 1,
} as const

/** Returns the argument that names one resource. */
export function refArgument<T extends object>(resource: Resource<T>): ArgumentSpec {
  return {
    syntax: `<${resource.noun}>`,
    key: 'ref',
    description: `name or id of the ${resource.title}`,
    complete: resource.noun,
  }
}

import { isUuid } from '@slipway/contract/names'
import type { ListId } from '@slipway/sdk'
import type { Column } from '../output/print.ts'
import { ageOf } from '../output/text.ts'
import type { Cli } from './cli.ts'
import type { ArgumentSpec, ResourceNoun } from './command.ts'
import { type Named, resolveAmong } from './names.ts'

/** A kind of thing that has names. */
export interface Resolvable<T> {
  /** This is what a sentence calls one of them: `firewall rule`. */
  title: string
  /** With a name, the service may return only what has it. */
  list(cli: Cli, filter?: { names?: string; label_selector?: string | undefined }): Promise<T[]>
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

/** What the generic `list` knows of a noun. */
export interface Listable<T extends object> {
  noun: string
  /** This is what a sentence calls one of them: `firewall rule`. */
  title: string
  columns: Column<T>[]
  /** The route of the list; its records say which members `-o columns=…` may name. */
  route: ListId
  list(cli: Cli): Promise<T[]>
}

/** What all generic verbs know of a noun. */
export interface Resource<T extends object> extends Listable<T>, Resolvable<T> {
  noun: ResourceNoun
  /** The name that examples use. */
  example: string
  list: Resolvable<T>['list']
  fields?: (thing: T) => [label: string, value: string][]
}

/** The name of a thing that has an id and a name of its own. */
export const ownName = (thing: { id: string; name: string }): Named => thing

export const idColumn = { name: 'id', value: (thing: { id: string }) => thing.id, isExtra: true } as const

export const ageColumn = {
  name: 'age',
  value: (thing: { created_at: string }) => ageOf(thing.created_at),
  align: 'right',
  spare: 1,
} as const

/** Describes the argument that names one thing of a noun. */
export function refArgument<T extends object>(resource: Resource<T>): ArgumentSpec {
  return {
    syntax: `<${resource.noun}>`,
    key: 'ref',
    description: `name or id of the ${resource.title}`,
    complete: resource.noun,
  }
}

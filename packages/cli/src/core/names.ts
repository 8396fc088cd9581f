import { NotFound, UsageError } from '../errors/cli-error.ts'
import { type Cli, isUuid } from './cli.ts'

export interface Named {
  id: string
  name: string
  /** Tells things of one name apart. */
  hint?: string
}

/** Finds the one thing that a person means by a name or an id. */
export function resolveAmong<T>(
  noun: string,
  wanted: string,
  things: T[],
  named: (thing: T) => Named,
): T & Named {
  const all = things.map((thing) => ({ ...thing, ...named(thing) }))
  const byId = all.find((thing) => thing.id === wanted)
  if (byId) return byId
  const matches = all.filter((thing) => thing.name === wanted)
  const [only] = matches
  if (only && matches.length === 1) return only
  if (matches.length > 1) {
    throw new UsageError(
      `${matches.length} ${noun}s are called ${wanted}: use the id.`,
      matches.map(({ id, hint }) => (hint ? `${id}  ${hint}` : id)),
    )
  }
  const near = nearestNames(wanted, all)
  throw new NotFound(
    `There is no ${noun} called ${wanted}.`,
    near.length > 0 ? [`Did you mean ${near.join(' or ')}?`] : [],
  )
}

export interface Resolvable<T> {
  /** As in a sentence: `firewall rule`. */
  title: string
  /** With a name, a list may be narrowed by the service. */
  list(cli: Cli, filter?: { names?: string }): Promise<T[]>
  named(thing: T): Named
}

/** An id is taken as it is; a name costs one request. */
export async function idOf<T>(cli: Cli, kind: Resolvable<T>, wanted: string): Promise<string> {
  if (isUuid(wanted)) return wanted
  const matches = await kind.list(cli, { names: wanted })
  if (matches.some((thing) => kind.named(thing).name === wanted)) {
    return resolveAmong(kind.title, wanted, matches, kind.named).id
  }
  return resolveAmong(kind.title, wanted, await kind.list(cli), kind.named).id
}

function nearestNames(wanted: string, things: Named[]): string[] {
  const scored = things.map(({ name }) => ({
    name,
    distance: distance(wanted.toLowerCase(), name.toLowerCase()),
  }))
  return scored
    .filter((entry) => entry.distance <= Math.max(2, wanted.length / 3))
    .sort((one, other) => one.distance - other.distance)
    .slice(0, 3)
    .map((entry) => entry.name)
}

/** How many letters must change to make one word of the other. */
function distance(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, index) => index)
  for (let i = 1; i <= one.length; i++) {
    const next = [i]
    for (let j = 1; j <= other.length; j++) {
      const swap = row[j - 1]! + (one[i - 1] === other[j - 1] ? 0 : 1)
      next.push(Math.min(swap, row[j]! + 1, next[j - 1]! + 1))
    }
    row = next
  }
  return row[other.length]!
}

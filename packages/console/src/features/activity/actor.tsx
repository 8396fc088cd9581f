import { Link } from '@tanstack/react-router'
import { shortId } from '../../lib/format.ts'
import { Name, NoBreak } from '../../ui/no-break.tsx'

/** The names that events refer to by id. */
export interface Names {
  nameOf: (id: string) => string | undefined
  actors: Map<string, string>
  /** Operators may see the identity of every actor. */
  isFleet: boolean
}

/** The actor of events that no user caused. */
export const systemActor = 'Slipway'

/** Returns the display name of an actor. Tenants do not see which operator acted. */
function actorText(actor: string, { nameOf, actors, isFleet }: Names): string {
  const [kind = '', id = ''] = actor.split(':')
  if (kind === 'system') return systemActor
  const name = actors.get(actor) ?? (kind === 'user' && nameOf(id))
  if (name) return name
  if (!isFleet && kind === 'operator_key') return 'an operator'
  // Names are missing until the members are loaded.
  const areMembersLoaded = [...actors.keys()].some((known) => known.startsWith('user:'))
  if (!isFleet && kind === 'user' && areMembersLoaded) return 'an operator or a former member'
  return id ? `${kind.replaceAll('_', ' ')} …${shortId(id)}` : kind || '–'
}

/** Shows the actor of an event. Operators can open the page of a user. A line never breaks inside an id. */
export function Actor({ actor, names }: { actor: string; names: Names }) {
  const words = actorText(actor, names)
  const [type, userId = ''] = actor.split(':')
  if (names.isFleet && type === 'user')
    return (
      <Link to="/fleet/users/$userId" params={{ userId }} className="link">
        <Name text={words} />
      </Link>
    )
  const [, kind, id] = /^(.+) (…\w+)$/.exec(words) ?? []
  return (
    <span title={`${words} (${actor})`}>
      {id ? (
        <>
          {kind} <NoBreak>{id}</NoBreak>
        </>
      ) : (
        <Name text={words} />
      )}
    </span>
  )
}

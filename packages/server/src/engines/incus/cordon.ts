import type { IncusContext } from './context.ts'
import type { Member } from './members.ts'

const schedulerKey = 'scheduler.instance'
/** What a member that says nothing does. */
const schedulerDefault = 'all'
/** Set on a member that Slipway closed: what its scheduler said before. Incus keeps no key without a value. */
const cordonMark = 'user.slipway.scheduler-before'

/**
 * Whether Slipway told the other users of the cluster to leave this member alone. Undefined is a member that is not ours
 * to open or close: one that is evacuated or away, or that somebody else took out of Incus's scheduler.
 */
export function isCordoned({ status, config }: Pick<Member, 'status' | 'config'>): boolean | undefined {
  if (status !== 'Online') return undefined
  if (cordonMark in config) return true
  return config[schedulerKey] === 'manual' ? undefined : false
}

/** Incus places nothing by itself on a member that is `manual`; what names it as its target still goes there. */
export async function cordonMember(
  { client }: IncusContext,
  name: string,
  isWanted: boolean,
  signal: AbortSignal,
): Promise<void> {
  const path = `/1.0/cluster/members/${encodeURIComponent(name)}`
  const { value: member, etag } = await client.read<Member>(path, { signal })
  // Evacuated since it was listed, or changed by another worker.
  if (isCordoned(member) !== !isWanted) return
  // What is left out of a member's change is taken from it, its roles first of all.
  const body = { ...member, config: isWanted ? closed(member.config) : opened(member.config) }
  await client.change('PUT', path, body, { signal, ifMatch: etag })
}

const closed = (config: Member['config']) => ({
  ...config,
  ...{ [cordonMark]: config[schedulerKey] || schedulerDefault, [schedulerKey]: 'manual' },
})

function opened({ [cordonMark]: before, [schedulerKey]: now, ...config }: Member['config']) {
  // Whoever gave it another meaning meanwhile meant it.
  const scheduler = now === 'manual' ? before : now
  return { ...config, ...(scheduler && scheduler !== schedulerDefault && { [schedulerKey]: scheduler }) }
}

import type { IncusContext } from '../context.ts'
import { changeMember, type Member } from './members.ts'

const schedulerKey = 'scheduler.instance'
const schedulerDefault = 'all'
/**
 * On a member that Slipway cordoned: the previous value of the member's scheduler key. Incus stores no empty
 * values.
 */
const cordonMark = 'user.slipway.scheduler-before'

/**
 * Returns whether Slipway prevents other users of the cluster from placing instances on this member.
 * Undefined means that Slipway does not control this: the member is evacuated or down, or an operator took it
 * out of Incus's scheduler.
 */
export function isCordoned({ status, config }: Pick<Member, 'status' | 'config'>): boolean | undefined {
  if (status !== 'Online') return undefined
  if (cordonMark in config) return true
  return config[schedulerKey] === 'manual' ? undefined : false
}

/**
 * Incus does not choose a `manual` member for new instances. An instance that is created with this member as
 * its target is still created there.
 */
export const cordonMember = (
  ctx: IncusContext,
  name: string,
  isWanted: boolean,
  signal: AbortSignal,
): Promise<void> =>
  changeMember(ctx, name, signal, (member) => {
    // The member may have been evacuated, or changed by another worker, since it was listed.
    if (isCordoned(member) !== !isWanted) return null
    return isWanted ? cordonChange(member.config) : uncordonChange(member.config)
  })

const cordonChange = (config: Member['config']) => ({
  ...{ [cordonMark]: config[schedulerKey] || schedulerDefault, [schedulerKey]: 'manual' },
})

function uncordonChange({ [cordonMark]: before = '', [schedulerKey]: now = '' }: Member['config']) {
  // A value that an operator set in the meantime is kept.
  const scheduler = now === 'manual' ? before : now
  return { [cordonMark]: '', [schedulerKey]: scheduler === schedulerDefault ? '' : scheduler }
}

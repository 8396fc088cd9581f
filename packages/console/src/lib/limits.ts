import type { OrganizationQuota, Quota } from '@slipway/sdk'

/** How much of something there may be, and is. */
export interface Limit extends Pick<Quota, 'name' | 'used' | 'max'> {
  /** The owner of the quota; a quota of an organization applies to all of its projects together. */
  of: 'project' | 'organization'
}

/** Returns of each quota the one that is met first: the project's, or that of its organization. */
export const limitsOf = (ofProject: Quota[], ofOrganization: OrganizationQuota[]): Limit[] =>
  ofProject.map(({ name, used, max }) => {
    const whole = ofOrganization.find((quota) => quota.name === name)
    return whole && whole.max - whole.used <= max - used
      ? { name, of: 'organization', used: whole.used, max: whole.max }
      : { name, of: 'project', used, max }
  })

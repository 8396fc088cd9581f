import type { OrganizationQuota, Quota } from '@slipway/sdk'

/** The limit and the usage of a quota. */
export interface Limit extends Pick<Quota, 'name' | 'used' | 'max'> {
  /** The owner of the quota; an organization quota applies to all of its projects combined. */
  of: 'project' | 'organization'
}

/** Returns the tighter limit for each quota: the project's or the organization's. */
export const limitsOf = (ofProject: Quota[], ofOrganization: OrganizationQuota[]): Limit[] =>
  ofProject.map(({ name, used, max }) => {
    const whole = ofOrganization.find((quota) => quota.name === name)
    return whole && whole.max - whole.used <= max - used
      ? { name, of: 'organization', used: whole.used, max: whole.max }
      : { name, of: 'project', used, max }
  })

import type { OrganizationQuota, Quota } from '@slipway/sdk'

/** The limit and the usage of a quota. */
export interface Limit extends Pick<Quota, 'name' | 'used' | 'max'> {
  /** The owner of the quota; an organization quota applies to all of its projects combined. */
  owner: 'project' | 'organization'
}

/** Returns the tighter limit for each quota: the project's or the organization's. */
export const limitsOf = (projectQuotas: Quota[], organizationQuotas: OrganizationQuota[]): Limit[] =>
  projectQuotas.map(({ name, used, max }) => {
    const organizationQuota = organizationQuotas.find((quota) => quota.name === name)
    return organizationQuota && organizationQuota.max - organizationQuota.used <= max - used
      ? { name, owner: 'organization', used: organizationQuota.used, max: organizationQuota.max }
      : { name, owner: 'project', used, max }
  })

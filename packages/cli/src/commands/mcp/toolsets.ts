import type { Tag } from '@slipway/contract'

/** Tools are grouped by route tag. Agents cannot sign in; operator tools have their own flag. */
const sets: Record<Lowercase<Exclude<Tag, 'Authentication' | 'Operators'>>, true> = {
  organizations: true,
  projects: true,
  catalogue: true,
  vms: true,
  disks: true,
  vpc: true,
  operations: true,
  events: true,
}

export const toolsetNames = Object.keys(sets)

/** Tools that are not in a set, such as the tool that returns the caller, are always included. */
export const isInToolset = (tag: Tag, wanted: string[] | undefined): boolean =>
  wanted === undefined || !toolsetNames.includes(tag.toLowerCase()) || wanted.includes(tag.toLowerCase())

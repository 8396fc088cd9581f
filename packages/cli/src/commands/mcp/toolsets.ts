import type { Tag } from '@slipway/contract'

/** Groups of tools, by the tags of their routes. Sessions are for people; the operator's side has a flag of its own. */
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

/** What is in no set is in all of them, such as the tool that says who one is. */
export const isInToolset = (tag: Tag, wanted: string[] | undefined): boolean =>
  wanted === undefined || !toolsetNames.includes(tag.toLowerCase()) || wanted.includes(tag.toLowerCase())

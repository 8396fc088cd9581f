import type { Host } from '@slipway/sdk'

/** Returns a comparator that sorts hosts by location, in configuration order, then by name. */
export function hostOrder(capacity: { location: string }[]): (one: Host, other: Host) => number {
  const locations = [...new Set(capacity.map(({ location }) => location))]
  return (one, other) =>
    locations.indexOf(one.location) - locations.indexOf(other.location) ||
    one.name.localeCompare(other.name, 'en', { numeric: true })
}

import type { Host } from '@slipway/sdk'

/** Returns a comparison of hosts: by location in the order of the configuration, then by name. */
export function hostOrder(capacity: { location: string }[]): (one: Host, other: Host) => number {
  const places = [...new Set(capacity.map(({ location }) => location))]
  return (one, other) =>
    places.indexOf(one.location) - places.indexOf(other.location) ||
    one.name.localeCompare(other.name, 'en', { numeric: true })
}

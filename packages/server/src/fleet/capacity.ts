import { familyNames, vmTypes } from '@slipway/contract'
import type { Queryable } from '../postgres/database.ts'
import { listAvailability } from '../store/compute/placement.ts'
import { countGpus } from '../store/fleet/fleet.ts'
import { listLocations } from '../store/fleet/locations.ts'

/** Returns the GPUs of each family in each location, and the largest VM type that fits now. */
export async function readCapacity(db: Queryable) {
  const [locations, counts, fits] = await Promise.all([
    listLocations(db),
    countGpus(db),
    listAvailability(db, vmTypes, null),
  ])
  const fitsAt = (location: string, type: string) =>
    fits.some((item) => item.available && item.location === location && item.type === type)
  return locations.flatMap(({ name: location }) =>
    familyNames.map((family) => {
      const count = counts.find((row) => row.location === location && row.family === family)
      const { total = 0, free = 0, unavailable = 0, claimed = 0, quarantined = 0, held = 0 } = count ?? {}
      const largest = vmTypes.findLast((type) => type.family === family && fitsAt(location, type.name))
      const largest_type = largest?.name ?? ''
      return { location, family, total, free, unavailable, claimed, quarantined, held, largest_type }
    }),
  )
}

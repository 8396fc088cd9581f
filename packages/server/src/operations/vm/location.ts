import { type VmCreate, vmType } from '@slipway/contract'
import { findDisk } from '../../store/compute/disks.ts'
import { listAvailability } from '../../store/compute/placement.ts'
import type { Tx } from '../../store/database.ts'
import { findImage } from '../../store/fleet/images.ts'
import { findSubnet } from '../../store/network/networks.ts'
import type { CatalogueMemory } from '../catalogue.ts'

/**
 * Chooses where a VM goes that may go anywhere: where its disks or its subnet are, else the first location in catalogue
 * order that has stock, its image and a subnet of the project. Where nothing fits, one is returned all the same, so that
 * the creation is refused for what it lacks there.
 */
export async function chooseLocation(
  tx: Tx,
  catalogue: CatalogueMemory,
  projectId: string,
  body: VmCreate,
): Promise<{ name: string; isAvailable: boolean }> {
  const [image, pinned, places] = await Promise.all([
    findImage(tx, body.image),
    pinnedLocation(tx, projectId, body),
    listAvailability(tx, [vmType(body.type)!], null),
  ])
  const withImage = places.filter(({ location }) => !image || image.locations.includes(location))
  const possible: typeof places = []
  for (const place of withImage)
    if (pinned === undefined && (await catalogue.subnet(tx, projectId, place.location, null)))
      possible.push(place)
    else if (place.location === pinned) possible.push(place)
  const available = possible.find((place) => place.available)
  const chosen = available?.location ?? pinned ?? (possible[0] ?? withImage[0] ?? places[0])?.location ?? ''
  return { name: chosen, isAvailable: available !== undefined }
}

/** A disk is where it is, and so is a subnet. */
async function pinnedLocation(tx: Tx, projectId: string, { disks, subnet_id }: VmCreate) {
  const [disk] = disks ?? []
  if (disk) return (await findDisk(tx, projectId, disk.disk_id))?.location
  return subnet_id && (await findSubnet(tx, projectId, subnet_id))?.location
}

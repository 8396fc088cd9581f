import { type VmCreate, vmType } from '@slipway/contract'
import type { Tx } from '../../postgres/database.ts'
import { findDisk } from '../../store/compute/disks.ts'
import { listAvailability } from '../../store/compute/placement.ts'
import { findImage } from '../../store/fleet/images.ts'
import { listTakenRanges } from '../../store/network/carried-ranges.ts'
import { findSubnet } from '../../store/network/networks.ts'
import type { CatalogueMemory } from '../catalogue.ts'

/**
 * Chooses where a VM goes that may go anywhere: where its disks or its subnet are, else the first location in catalogue
 * order that has stock, its image and a subnet of the project. Where nothing fits, one is returned all the same, so that
 * the creation is refused for what it lacks there. `fitting` lists where it would fit.
 */
export async function chooseLocation(
  tx: Tx,
  catalogue: CatalogueMemory,
  projectId: string,
  body: VmCreate,
): Promise<{ name: string; fitting: string[] }> {
  const [image, pinned, places] = await Promise.all([
    findImage(tx, body.image),
    pinnedLocation(tx, projectId, body),
    listAvailability(tx, [vmType(body.type)!], null),
  ])
  const withImage = places.filter(({ location }) => !image || image.locations.includes(location))
  const possible: { location: string; isAvailable: boolean; bridgedSubnetId: string | null }[] = []
  for (const { location, available } of withImage) {
    if (pinned !== undefined && location !== pinned) continue
    const subnetId = pinned === undefined ? null : (body.subnet_id ?? null)
    const subnet = await catalogue.subnet(tx, projectId, location, subnetId)
    if (!subnet && pinned === undefined) continue
    possible.push({
      location,
      isAvailable: available,
      bridgedSubnetId: subnet?.is_bridged ? subnet.id : null,
    })
  }
  const bridged = possible.flatMap(({ bridgedSubnetId }) => bridgedSubnetId ?? [])
  const taken = bridged.length > 0 ? await listTakenRanges(tx, bridged) : new Set<string>()
  const fitting = possible
    .filter(({ isAvailable, bridgedSubnetId }) => isAvailable && !taken.has(bridgedSubnetId ?? ''))
    .map(({ location }) => location)
  const name = fitting[0] ?? pinned ?? (possible[0] ?? withImage[0] ?? places[0])?.location ?? ''
  return { name, fitting }
}

/** A disk is where it is, and so is a subnet. */
async function pinnedLocation(tx: Tx, projectId: string, { disks, subnet_id }: VmCreate) {
  const [disk] = disks ?? []
  if (disk) return (await findDisk(tx, projectId, disk.disk_id))?.location
  return subnet_id && (await findSubnet(tx, projectId, subnet_id))?.location
}

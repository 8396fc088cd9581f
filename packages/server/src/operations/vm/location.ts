import { vmType } from '@slipway/contract'
import type { Tx } from '../../postgres/database.ts'
import { retryAlone } from '../../postgres/transaction.ts'
import { findImageByRef } from '../../store/captures/captures.ts'
import { findDisk } from '../../store/compute/disks.ts'
import { listAvailability } from '../../store/compute/placement.ts'
import { findImage } from '../../store/fleet/images.ts'
import { carryRange, holdCarriedRange, listTakenRanges } from '../../store/network/carried-ranges.ts'
import { findSubnet } from '../../store/network/networks.ts'
import { findAddress } from '../../store/network/public-addresses.ts'
import { readReservedRoom } from '../capacity/reserved-placement.ts'
import type { CatalogueCache } from '../catalogue.ts'
import type { VmBody } from './template.ts'

/**
 * Chooses the location of a VM with `location: any`. If the request names a custom image, disks, an address
 * or a subnet, the VM must be in the same location as these. Otherwise, the choice is the first location in catalogue
 * order that has stock or reserved GPUs, the image and a subnet of the project. If the VM fits nowhere, a location is
 * returned anyway, so that the refusal says what is missing there. `fitting` lists where the VM fits.
 */
export async function chooseLocation(
  tx: Tx,
  catalogue: CatalogueCache,
  projectId: string,
  body: VmBody,
): Promise<{ name: string; fitting: string[] }> {
  const type = vmType(body.type)!
  const [image, pinned, all, reserved] = await Promise.all([
    body.image === undefined ? undefined : findImage(tx, body.image),
    pinnedLocation(tx, projectId, body),
    listAvailability(tx, [type], null),
    readReservedRoom(tx, projectId, body, type),
  ])
  const withImage = all.filter(({ location }) => !image || image.locations.includes(location))
  const possible: { location: string; isAvailable: boolean; bridgedSubnetId: string | null }[] = []
  for (const { location, available } of withImage) {
    if (pinned !== undefined && location !== pinned) continue
    const subnetId = pinned === undefined ? null : (body.subnet_id ?? null)
    const subnet = await catalogue.subnet(tx, projectId, location, subnetId)
    if (!subnet && pinned === undefined) continue
    possible.push({
      location,
      isAvailable: available || reserved(location).length > 0,
      bridgedSubnetId: subnet?.is_bridged ? subnet.id : null,
    })
  }
  const bridged = possible.flatMap(({ bridgedSubnetId }) => bridgedSubnetId ?? [])
  const taken = bridged.length > 0 ? await listTakenRanges(tx, bridged) : new Set<string>()
  const fitting = possible
    .filter(({ isAvailable, bridgedSubnetId }) => isAvailable && !taken.has(bridgedSubnetId ?? ''))
    .map(({ location }) => location)
  const name = fitting[0] ?? pinned ?? (possible[0] ?? withImage[0] ?? all[0])?.location ?? ''
  return { name, fitting }
}

/**
 * Returns the location of what the request names: its custom image, or else its first disk, reserved address
 * or subnet.
 */
async function pinnedLocation(
  tx: Tx,
  projectId: string,
  { custom_image, disks, subnet_id, public_address_id }: VmBody,
) {
  if (custom_image !== undefined) return (await findImageByRef(tx, projectId, custom_image))?.location
  const [disk] = disks ?? []
  if (disk) return (await findDisk(tx, projectId, disk.disk_id))?.location
  if (public_address_id) return (await findAddress(tx, projectId, public_address_id))?.location
  return subnet_id && (await findSubnet(tx, projectId, subnet_id))?.location
}

/**
 * Ensures that the bridges of the location's hosts carry the range of a subnet until the transaction ends.
 * Returns false if VMs of another network use a range that overlaps with it.
 */
export async function reserveRange(tx: Tx, subnetId: string): Promise<boolean> {
  if (await holdCarriedRange(tx, subnetId)) return true
  if (!tx.mayWait) throw retryAlone('the location does not carry the range yet')
  return carryRange(tx, subnetId)
}

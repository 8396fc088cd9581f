import { randomBytes } from 'node:crypto'
import { anyLocation, gpuQuota, type VmCreate, type VmType, vmType } from '@slipway/contract'
import { macFor } from '../../domain/addresses.ts'
import { Failure, invalidField } from '../../domain/failure.ts'
import { fullImageName } from '../../domain/guest/images.ts'
import { isCloudConfig } from '../../domain/guest/scripts.ts'
import { uuid } from '../../domain/ids.ts'
import type { Tx } from '../../postgres/database.ts'
import type { NewVm } from '../../store/compute/vm-changes.ts'
import type { LocationRow } from '../../store/fleet/locations.ts'
import type { VmSubnetRow } from '../../store/network/networks.ts'
import type { ProjectRequester } from '../admission.ts'
import type { CatalogueCache } from '../catalogue.ts'
import { requireDistinct } from '../disk/attachments.ts'
import type { Addresses } from './addresses.ts'
import { osDiskOf, scriptDigest, sshKeysOf } from './given.ts'
import { chooseLocation } from './location.ts'
import { osDiskQuota } from './os-disk.ts'
import type { Placement } from './place.ts'

/** A checked request for a VM, before anything is claimed for it. */
export interface VmPlan {
  id: string
  by: ProjectRequester
  body: VmCreate
  type: VmType
  location: LocationRow
  subnet: VmSubnetRow
  osDisk: { size: string; gib: number }
  sshPublicKeys: string[]
}

/** Checks the request against the catalogue and throws the 400s. */
export async function planVm(
  tx: Tx,
  catalogue: CatalogueCache,
  by: ProjectRequester,
  body: VmCreate,
): Promise<VmPlan> {
  requireDistinct('disks', body.disks ?? [])
  const osDisk = osDiskOf(body)
  const sshPublicKeys = await sshKeysOf(tx, by.projectId, body)
  if (body.on_expiry !== undefined && body.ttl_seconds === undefined)
    throw invalidField('on_expiry', 'requires ttl_seconds')
  const where =
    body.location === anyLocation
      ? (await chooseLocation(tx, catalogue, by.projectId, body)).name
      : body.location
  const location = await catalogue.location(tx, where)
  const image = await catalogue.image(tx, body.image, location.name)
  if (isCloudConfig(body.startup_script ?? '') && !image.tags.includes('cloud-init'))
    throw invalidField(
      'startup_script',
      `must be a script: the image ${image.name} has no cloud-init and cannot read #cloud-config`,
    )
  const subnet = await catalogue.subnet(tx, by.projectId, location.name, body.subnet_id ?? null)
  if (!subnet)
    throw body.subnet_id === undefined
      ? new Failure('conflict', `The project has no subnet in ${location.name}. Create one first.`)
      : invalidField('subnet_id', 'must be a subnet of this project')
  if (subnet.location !== location.name)
    throw invalidField('subnet_id', `is in ${subnet.location}, not in ${location.name}`)
  return { id: uuid(), by, body, type: vmType(body.type)!, location, subnet, osDisk, sshPublicKeys }
}

export const rowOf = (
  { id, by, body, type, location, subnet, osDisk, sshPublicKeys }: VmPlan,
  placement: Placement,
  addresses: Addresses,
): NewVm => ({
  id,
  projectId: by.projectId,
  name: body.name,
  type: type.name,
  family: type.family,
  gpuCount: type.gpuCount,
  location: location.name,
  hostId: placement.hostId,
  image: body.image,
  imageName: fullImageName(body.image),
  sshPublicKeys,
  startupScript: body.startup_script ?? '',
  startupScriptSha256: scriptDigest(body.startup_script ?? ''),
  shutdownScript: body.shutdown_script ?? '',
  osDiskId: uuid(),
  osDiskSize: osDisk.size,
  osDiskGib: osDisk.gib,
  interfaceId: uuid(),
  subnetId: subnet.id,
  macAddress: macFor(randomBytes(6)),
  ...addresses,
  publicAddressId: addresses.publicAddress === null ? null : uuid(),
  ttlSeconds: body.ttl_seconds ?? null,
  onExpiry: body.on_expiry ?? 'stop',
  labels: body.labels ?? {},
  description: body.description ?? '',
  isProtected: body.deletion_protection ?? false,
})

export const quotaOf = ({ by, type, osDisk }: VmPlan) => ({
  projectId: by.projectId,
  amounts: {
    vms: 1,
    [gpuQuota(type.family)]: type.gpuCount,
    ...osDiskQuota({ os_disk_gib: osDisk.gib }),
  },
})

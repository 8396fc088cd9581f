import { randomBytes } from 'node:crypto'
import { anyLocation, gpuQuota, type VmType, vmType } from '@slipway/contract'
import { macFor } from '../../domain/addresses.ts'
import { Failure, invalidField } from '../../domain/failure.ts'
import { fullImageName } from '../../domain/guest/images.ts'
import { isCloudConfig } from '../../domain/guest/scripts.ts'
import { uuid } from '../../domain/ids.ts'
import type { Tx } from '../../postgres/database.ts'
import { retryAlone } from '../../postgres/transaction.ts'
import { type CaptureRow, findImageByRef, shareCapture } from '../../store/captures/captures.ts'
import type { NewDisk } from '../../store/compute/disks.ts'
import type { QuotaAmounts } from '../../store/compute/quotas.ts'
import type { NewVm } from '../../store/compute/vm-changes.ts'
import type { LocationRow } from '../../store/fleet/locations.ts'
import type { VmSubnetRow } from '../../store/network/networks.ts'
import type { AddressRow } from '../../store/network/public-addresses.ts'
import type { ProjectRequester } from '../admission.ts'
import { requireAvailable } from '../capture/sources.ts'
import type { CatalogueCache } from '../catalogue.ts'
import { hostsOf, type LockedDisk, requireDistinct } from '../disk/attachments.ts'
import { idlePolicyOf, requireReporter } from '../idle-policy.ts'
import type { Addresses } from './addresses.ts'
import { chooseLocation } from './location.ts'
import { newDisksOf, newDisksQuota } from './new-disks.ts'
import { osDiskExcessGib } from './os-disk.ts'
import type { Placement } from './place.ts'
import { osDiskOf, scriptDigest, sshKeysOf } from './request-fields.ts'
import type { VmBody } from './template.ts'

/** A checked request for a VM, before anything is claimed for it. */
export interface VmPlan {
  id: string
  by: ProjectRequester
  body: VmBody
  type: VmType
  location: LocationRow
  subnet: VmSubnetRow
  /** Null if the VM uses an image from the catalogue. */
  customImage: CaptureRow | null
  osDisk: { size: string; gib: number }
  sshPublicKeys: string[]
  /** The disks that are created with the VM. */
  newDisks: NewDisk[]
  /** The reserved address that the VM gets. */
  address?: AddressRow | undefined
  /** The group that the VM is a member of, and its number there. */
  member?: { groupId: string; number: number }
}

/** Checks the request against the catalogue. Throws a 400 if it does not fit. */
export async function planVm(
  tx: Tx,
  catalogue: CatalogueCache,
  by: ProjectRequester,
  body: VmBody,
): Promise<VmPlan> {
  requireDistinct('disks', body.disks ?? [])
  const customImage = await customImageOf(tx, by.projectId, body)
  const osDisk = osDiskOf(body, customImage ?? undefined)
  const sshPublicKeys = await sshKeysOf(tx, by.projectId, body)
  if (body.on_expiry !== undefined && body.ttl_seconds === undefined)
    throw invalidField('on_expiry', 'requires ttl_seconds')
  const where =
    body.location === anyLocation
      ? (await chooseLocation(tx, catalogue, by.projectId, body)).name
      : body.location
  const location = await catalogue.location(tx, where)
  if (customImage && customImage.location !== location.name)
    throw invalidField('custom_image', `is in ${customImage.location}, not in ${location.name}`)
  const image = customImage ?? (await catalogue.image(tx, body.image!, location.name))
  if (isCloudConfig(body.startup_script ?? '') && !image.tags.includes('cloud-init'))
    throw invalidField(
      'startup_script',
      `must be a script: the image ${image.name} has no cloud-init and cannot read #cloud-config`,
    )
  if (body.idle_policy) requireReporter(image, location)
  const subnet = await catalogue.subnet(tx, by.projectId, location.name, body.subnet_id ?? null)
  if (!subnet)
    throw body.subnet_id === undefined
      ? new Failure('conflict', `The project has no subnet in ${location.name}. Create a subnet first.`)
      : invalidField('subnet_id', 'must be a subnet of this project')
  if (subnet.location !== location.name)
    throw invalidField('subnet_id', `is in ${subnet.location}, not in ${location.name}`)
  const type = vmType(body.type)!
  const newDisks = newDisksOf(by.projectId, body, type, location.name)
  return { id: uuid(), by, body, type, location, subnet, customImage, osDisk, sshPublicKeys, newDisks }
}

/** Returns the custom image of the request, which cannot be deleted before the transaction ends. */
async function customImageOf(tx: Tx, projectId: string, body: VmBody): Promise<CaptureRow | null> {
  if (body.custom_image === undefined) return null
  // Waiting for a deletion of the image would delay the other requests in the batch.
  if (!tx.mayWait) throw retryAlone('custom images are locked by one request at a time')
  const image = await findImageByRef(tx, projectId, body.custom_image)
  if (!image) throw invalidField('custom_image', 'must be the id or name of a custom image of this project')
  await requireAvailable(tx, 'custom image', image)
  if (!(await shareCapture(tx, image.id)))
    throw new Failure('conflict', `The custom image ${image.name} is being deleted.`)
  return image
}

/**
 * Returns the hosts of the VM's local disks and custom image. If there are several, no single host has
 * everything.
 */
export const hostsFor = (
  { location, customImage }: Pick<VmPlan, 'location' | 'customImage'>,
  disks: LockedDisk[],
): string[] =>
  location.storage === 'local'
    ? [...new Set([...hostsOf(disks), ...(customImage?.host_id ? [customImage.host_id] : [])])]
    : []

export const notOnOneHost = () =>
  new Failure(
    'conflict',
    'The disks, and the custom image if there is one, are not all on the same host, so one VM cannot use them all.',
  )

export const rowOf = (
  { id, by, body, type, location, subnet, customImage, osDisk, sshPublicKeys, address, member }: VmPlan,
  placement: Placement,
  { privateAddress, publicAddress }: Addresses,
): NewVm => ({
  id,
  projectId: by.projectId,
  name: body.name,
  type: type.name,
  family: type.family,
  gpuCount: type.gpuCount,
  location: location.name,
  hostId: placement.hostId,
  image: customImage?.name ?? body.image!,
  imageName: customImage ? null : fullImageName(body.image!),
  customImageId: customImage?.id ?? null,
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
  privateAddress,
  publicAddress: address?.address ?? publicAddress,
  publicAddressId: address?.id ?? (publicAddress === null ? null : uuid()),
  isAddressStatic: address !== undefined,
  ttlSeconds: body.ttl_seconds ?? null,
  onExpiry: body.on_expiry ?? 'stop',
  onGpuFault: body.on_gpu_fault ?? 'none',
  idlePolicy: body.idle_policy ? idlePolicyOf(body.idle_policy) : null,
  labels: body.labels ?? {},
  description: body.description ?? '',
  isProtected: body.deletion_protection ?? false,
  instanceTemplateId: body.instance_template_id ?? null,
  groupId: member?.groupId ?? null,
  groupNumber: member?.number ?? null,
})

export const quotaOf = (plan: VmPlan) => ({ projectId: plan.by.projectId, amounts: quotaAmountsOf(plan) })

export function quotaAmountsOf({
  type,
  osDisk,
  newDisks,
}: Pick<VmPlan, 'type' | 'osDisk' | 'newDisks'>): QuotaAmounts {
  const { disk_gib = 0, ...others } = newDisksQuota(newDisks)
  return {
    vms: 1,
    [gpuQuota(type.family)]: type.gpuCount,
    disk_gib: osDiskExcessGib({ os_disk_gib: osDisk.gib }) + disk_gib,
    ...others,
  }
}

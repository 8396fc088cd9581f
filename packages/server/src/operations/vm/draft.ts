import { anyLocation, gpuQuota, type VmCreate, vmType } from '@slipway/contract'
import { Failure, invalidField } from '../../domain/failure.ts'
import { fullImageName } from '../../domain/guest/images.ts'
import { isCloudConfig } from '../../domain/guest/scripts.ts'
import { uuid } from '../../domain/ids.ts'
import type { alone } from '../../store/batches.ts'
import type { NewVm } from '../../store/compute/vm-changes.ts'
import type { Tx } from '../../store/database.ts'
import type { LocationRow } from '../../store/fleet/locations.ts'
import type { VmSubnetRow } from '../../store/network/networks.ts'
import type { ProjectRequester } from '../admission.ts'
import type { CatalogueMemory } from '../catalogue.ts'
import { type LockedDisk, requireDistinct } from '../disk/attachments.ts'
import { osDiskOf, scriptDigest, sshKeysOf } from './given.ts'
import { chooseLocation } from './location.ts'
import { osDiskQuota } from './os-disk.ts'
import { type Addresses, newMacAddress, type Placement } from './place.ts'

export interface VmCreation {
  by: ProjectRequester
  body: VmCreate
}

/** A creation on its way to be admitted: what it has been given so far, or why it goes no further. */
export class Draft {
  readonly id = uuid()
  readonly by: ProjectRequester
  readonly body: VmCreate
  readonly type
  location!: LocationRow
  subnet!: VmSubnetRow
  osDisk!: { size: string; gib: number }
  sshPublicKeys!: string[]
  disks: LockedDisk[] = []
  /** Where its disks are; null when any host will do. */
  allowedHosts: string[] | null = null
  addresses!: Addresses
  placement!: Placement
  refusal: Failure | typeof alone | undefined

  constructor({ by, body }: VmCreation) {
    this.by = by
    this.body = body
    this.type = vmType(body.type)!
  }

  get name() {
    return { projectId: this.by.projectId, name: this.body.name }
  }

  get hasPublicAddress() {
    return this.body.public_ip !== 'none'
  }

  /** It goes wherever it fits. */
  get isAnywhere() {
    return this.body.location === anyLocation
  }

  get isStorageLocal() {
    return this.location.storage === 'local'
  }

  /** Does what may be refused. */
  async refuseUnless(work: () => Promise<void>): Promise<void> {
    await work().catch((error) => {
      if (!(error instanceof Failure)) throw error
      this.refusal = error
    })
  }
}

/** The 400s, by the catalogue. */
export async function checkDraft(tx: Tx, catalogue: CatalogueMemory, draft: Draft): Promise<void> {
  const { body, by } = draft
  requireDistinct('disks', body.disks ?? [])
  const osDisk = osDiskOf(body)
  const sshPublicKeys = await sshKeysOf(tx, by.projectId, body)
  if (body.on_expiry !== undefined && body.ttl_seconds === undefined)
    throw invalidField('on_expiry', 'needs ttl_seconds')
  const where = draft.isAnywhere
    ? (await chooseLocation(tx, catalogue, by.projectId, body)).name
    : body.location
  const location = await catalogue.location(tx, where)
  const image = await catalogue.image(tx, body.image, location.name)
  if (isCloudConfig(body.startup_script ?? '') && !image.tags.includes('cloud-init'))
    throw invalidField(
      'startup_script',
      `must be a script: ${image.name} has no cloud-init for #cloud-config`,
    )
  const subnet = await catalogue.subnet(tx, by.projectId, location.name, body.subnet_id ?? null)
  if (!subnet)
    throw body.subnet_id === undefined
      ? new Failure('conflict', `The project has no subnet in ${location.name}: create one first.`)
      : invalidField('subnet_id', 'must be a subnet of this project')
  if (subnet.location !== location.name)
    throw invalidField('subnet_id', `is in ${subnet.location}, not in ${location.name}`)
  Object.assign(draft, { location, subnet, osDisk, sshPublicKeys })
}

/** What it is in the store once it has a place. */
export const rowOf = ({
  id,
  by,
  body,
  type,
  location,
  subnet,
  placement,
  addresses,
  ...given
}: Draft): NewVm => ({
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
  sshPublicKeys: given.sshPublicKeys,
  startupScript: body.startup_script ?? '',
  startupScriptSha256: scriptDigest(body.startup_script ?? ''),
  shutdownScript: body.shutdown_script ?? '',
  osDiskId: uuid(),
  osDiskSize: given.osDisk.size,
  osDiskGib: given.osDisk.gib,
  interfaceId: uuid(),
  subnetId: subnet.id,
  macAddress: newMacAddress(),
  ...addresses,
  publicAddressId: addresses.publicAddress === null ? null : uuid(),
  ttlSeconds: body.ttl_seconds ?? null,
  onExpiry: body.on_expiry ?? 'stop',
  labels: body.labels ?? {},
  description: body.description ?? '',
  isProtected: body.deletion_protection ?? false,
})

export const quotaOf = ({ by, type, osDisk }: Draft) => ({
  projectId: by.projectId,
  amounts: {
    vms: 1,
    [gpuQuota(type.family)]: type.gpuCount,
    ...osDiskQuota({ os_disk_gib: osDisk.gib }),
  },
})

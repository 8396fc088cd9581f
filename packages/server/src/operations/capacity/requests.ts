import {
  anyLocation,
  type CapacityRequestCreate,
  type Labels,
  maxHoldSeconds,
  maxWaitDays,
  type VmType,
  vmType,
} from '@slipway/contract'
import { asMember, Failure, invalidField, nameTaken, requireFound } from '../../domain/failure.ts'
import { uuid } from '../../domain/ids.ts'
import { TryAgain, type Tx, violatedConstraint } from '../../postgres/database.ts'
import { pingDatabase } from '../../postgres/ping.ts'
import { endHolds, lockHosts } from '../../store/capacity/holds.ts'
import {
  deletePlaces,
  lockLanes,
  lockLanesOfRequest,
  queueRequest,
  touchLanesOfRequest,
} from '../../store/capacity/lanes.ts'
import {
  endRequest,
  findRequest,
  findRequestRecord,
  insertRequest,
  type RequestRecordRow,
  type RequestRow,
  updateRequest,
} from '../../store/capacity/requests.ts'
import { listOffering } from '../../store/compute/placement.ts'
import { findVmName, lockVm } from '../../store/compute/vms.ts'
import type { OrganizationRequester } from '../../store/events/events.ts'
import { findLocation, listLocations } from '../../store/fleet/locations.ts'
import { type ProjectRequester, requireOrganizationQuota } from '../admission.ts'
import type { CatalogueCache } from '../catalogue.ts'
import { hostsOf, lockDisksFor, requireFree } from '../disk/attachments.ts'
import { planVm } from '../vm/plan.ts'
import { completeVmBody, type VmBody } from '../vm/template.ts'
import { emitRequest } from './events.ts'
import { offerGpus } from './offer.ts'

type By = ProjectRequester & OrganizationRequester

type WantedBody = Omit<CapacityRequestCreate, 'vm'> & { vm: VmBody | undefined }

/** What a request waits for: GPUs of one type, in one of several locations. */
interface Wanted {
  type: VmType
  places: { location: string; hostId: string | null }[]
}

/** Adds a request to the queues of its locations. What is in stock is offered to it right after the commit. */
export async function createRequest(
  tx: Tx,
  catalogue: CatalogueCache,
  by: By,
  given: CapacityRequestCreate,
): Promise<RequestRecordRow> {
  // A later version of the template, or its deletion, does not change the request.
  const vm =
    given.vm &&
    (await completeVmBody(tx, by.projectId, given.vm).catch((error) => {
      throw asMember('vm', error)
    }))
  const body: WantedBody = { ...given, vm }
  const { type, places } = await wantedOf(tx, catalogue, by, body)
  const { family, gpuCount } = type
  const request = await insertRequest(tx, {
    id: uuid(),
    organizationId: by.organizationId,
    projectId: by.projectId,
    onAvailable: body.on_available ?? 'create',
    holdSeconds: body.hold_seconds ?? maxHoldSeconds,
    body: JSON.stringify(body),
    startVmId: body.start_vm_id ?? null,
    family,
    gpus: gpuCount,
    labels: body.labels ?? {},
    until: await endOf(tx, body.until),
    actor: by.actor,
    requestId: by.requestId,
  }).catch((error) => {
    throw violatedConstraint(error) === 'capacity_requests_start'
      ? new Failure('conflict', 'A capacity request is already waiting to start this VM.')
      : error
  })
  await lockLanes(
    tx,
    places.map(({ location }) => ({ location, family })),
  )
  const { id, organization_id: organizationId } = request
  for (const { location, hostId } of places)
    await queueRequest(tx, { location, family }, { id, organizationId, gpus: gpuCount, hostId })
  await touchLanesOfRequest(tx, id)
  await requireOrganizationQuota(tx, by, 'capacity_requests')
  await emitRequest(tx, 'capacity_request.created', request, by)
  tx.signal('capacity')
  return (await findRequestRecord(tx, by.projectId, id))!
}

/** Checks the body as the creation or start would, except for stock, quota and budget. */
function wantedOf(tx: Tx, catalogue: CatalogueCache, by: By, body: WantedBody): Promise<Wanted> {
  if ((body.vm === undefined) === (body.start_vm_id === undefined))
    throw new Failure('invalid_argument', 'Send exactly one of vm and start_vm_id.')
  if (body.hold_seconds !== undefined && body.on_available !== 'hold')
    throw invalidField('hold_seconds', 'requires on_available: hold')
  return body.vm
    ? wantedByVm(tx, catalogue, by, body.vm, body.locations)
    : wantedByStart(tx, by, body.start_vm_id!, body.locations)
}

async function wantedByVm(
  tx: Tx,
  catalogue: CatalogueCache,
  by: By,
  vm: VmBody,
  locations: string[] | undefined,
): Promise<Wanted> {
  const type = vmType(vm.type)!
  if ((await findVmName(tx, { projectId: by.projectId, name: vm.name })).isTaken)
    throw nameTaken('VM', vm.name)
  const isAny = locations === undefined && vm.location === anyLocation
  const wanted = isAny ? (await listLocations(tx)).map(({ name }) => name) : (locations ?? [vm.location])
  const places: Wanted['places'] = []
  let refusal: unknown
  for (const location of wanted)
    try {
      places.push({ location, hostId: await hostOfDisks(tx, catalogue, by, { ...vm, location }, type) })
    } catch (error) {
      // With `any`, a location that cannot run the VM is skipped.
      if (!isAny || !(error instanceof Failure)) throw asMember('vm', error)
      refusal = error
    }
  if (places.length === 0) throw asMember('vm', refusal)
  return { type, places: await requireOffered(tx, 'vm/type', type, places) }
}

/** Checks the VM for one location. Returns the host of its disks where storage is local. */
async function hostOfDisks(tx: Tx, catalogue: CatalogueCache, by: By, vm: VmBody, type: VmType) {
  const { location } = await planVm(tx, catalogue, by, vm)
  const disks = await lockDisksFor(tx, by.projectId, 'disks', vm.disks, { location: location.name, type })
  await requireFree(tx, disks)
  const hosts = location.storage === 'local' ? hostsOf(disks) : []
  if (hosts.length > 1)
    throw new Failure('conflict', 'The disks are on different hosts: one VM cannot use them all.')
  return hosts[0] ?? null
}

async function wantedByStart(tx: Tx, by: By, vmId: string, locations: string[] | undefined): Promise<Wanted> {
  if (locations !== undefined)
    throw invalidField('locations', 'must be absent with start_vm_id: a VM stays in its location')
  const vm = requireFound('VM', await lockVm(tx, { projectId: by.projectId, id: vmId }))
  if (vm.state !== 'STATE_SHUTOFF' || vm.os_disk_lost_at)
    throw new Failure(
      'conflict',
      vm.os_disk_lost_at
        ? `The OS disk of the VM ${vm.name} is lost. It cannot be started.`
        : `START requires the VM to be in STATE_SHUTOFF; it is in ${vm.state}.`,
    )
  const isLocal = (await findLocation(tx, vm.location))?.storage === 'local'
  const type = vmType(vm.type)!
  const places = [{ location: vm.location, hostId: isLocal ? vm.host_id : null }]
  return { type, places: await requireOffered(tx, 'start_vm_id', type, places) }
}

/** Skips locations that have no host of this size, because waiting would not help there. */
async function requireOffered(tx: Tx, field: string, type: VmType, places: Wanted['places']) {
  const offering = await listOffering(tx, type)
  const possible = places.filter(({ location }) => offering.includes(location))
  if (possible.length > 0) return possible
  throw invalidField(
    field,
    `no host in ${places.map(({ location }) => location).join(', ')} can run ${type.name}. ${offering.length > 0 ? `Hosts that can run it are in ${offering.join(', ')}` : 'Choose another type'}`,
  )
}

async function endOf(tx: Tx, until: string | undefined): Promise<Date | null> {
  if (until === undefined) return null
  const at = new Date(until)
  const now = await pingDatabase(tx)
  if (at <= now) throw invalidField('until', 'must be in the future')
  if (at.getTime() > now.getTime() + maxWaitDays * 86_400_000)
    throw invalidField('until', `must be within ${maxWaitDays} days`)
  return at
}

export async function changeRequest(
  tx: Tx,
  by: By,
  id: string,
  change: { until?: string; labels?: Labels },
): Promise<RequestRecordRow> {
  if (Object.keys(change).length === 0)
    throw new Failure('invalid_argument', 'Send at least one field to change: until or labels.')
  const { projectId } = by
  const before = requireFound('capacity request', await findRequestRecord(tx, projectId, id))
  const until = await endOf(tx, change.until)
  const request = await updateRequest(tx, { projectId, id, until, labels: change.labels ?? null })
  if (!request) throw hasEnded(before)
  await emitRequest(tx, 'capacity_request.updated', request, by)
  return (await findRequestRecord(tx, projectId, id))!
}

/** Ends the request. The GPUs that are held for it are offered to other requests. */
export async function cancelRequest(tx: Tx, by: By, id: string): Promise<RequestRecordRow> {
  const request = requireFound('capacity request', await findRequestRecord(tx, by.projectId, id))
  if (!(await endAndOffer(tx, request, 'cancelled', by))) throw hasEnded(request)
  return (await findRequestRecord(tx, by.projectId, id))!
}

/** Ends a request that waits or is held, and offers the GPUs that were held for it. Returns false if it has ended. */
export async function endAndOffer(
  tx: Tx,
  { id, held_host }: Pick<RequestRow, 'id' | 'held_host'>,
  to: 'cancelled' | 'expired' | 'failed',
  by?: By,
  error?: { code: string; message: string },
): Promise<boolean> {
  if (held_host) {
    await lockHosts(tx, [held_host])
    await endHolds(tx, id, held_host)
  }
  await lockLanesOfRequest(tx, id)
  await touchLanesOfRequest(tx, id)
  await deletePlaces(tx, id)
  const ended = await endRequest(tx, {
    id,
    from: held_host ? 'held' : 'waiting',
    to,
    resourceId: null,
    operationId: null,
    error: error ? JSON.stringify(error) : null,
  })
  if (!ended) {
    // If the request has not ended, its state has changed since it was read.
    if ((await findRequest(tx, id))?.due_at) throw new TryAgain('the state of the request has changed')
    return false
  }
  await emitRequest(tx, `capacity_request.${to}`, ended, by)
  if (held_host) await offerGpus(tx, [held_host])
  tx.signal('capacity')
  return true
}

export const hasEnded = ({ state }: Pick<RequestRow, 'state'>) =>
  new Failure('conflict', `The capacity request is ${state}: it has ended.`)

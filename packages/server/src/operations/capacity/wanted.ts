import {
  anyLocation,
  type CapacityRequestCreate,
  gpuQuota,
  type InstanceGroupCreate,
  type VmType,
  vmType,
} from '@slipway/contract'
import { Failure, invalidField, nameTaken, nestFailure, requireFound } from '../../domain/failure.ts'
import type { Tx } from '../../postgres/database.ts'
import { listGroupOffering } from '../../store/compute/group-hosts.ts'
import { listGroups } from '../../store/compute/instance-groups.ts'
import { listOffering } from '../../store/compute/placement.ts'
import type { QuotaAmounts } from '../../store/compute/quotas.ts'
import { findVmName, lockVm } from '../../store/compute/vms.ts'
import { findLocation, listLocations } from '../../store/fleet/locations.ts'
import type { ProjectRequester } from '../admission.ts'
import type { CatalogueCache } from '../catalogue.ts'
import { lockDisksFor, requireFree } from '../disk/attachments.ts'
import { policyOf } from '../group/create.ts'
import { memberBody, memberName, requireShareable, timesCount } from '../group/members.ts'
import { hostsFor, notOnOneHost, planVm, quotaOf } from '../vm/plan.ts'
import { completeVmBody, type VmBody } from '../vm/template.ts'

/** What a request waits for: one VM or several of one type, in one of several locations. */
interface WantedCapacity {
  /** The request as it is stored. Later changes of a template do not affect it. */
  body: CapacityRequestCreate
  type: VmType
  vms: number
  isSpread: boolean
  ttlSeconds: number | null
  /** The quota that the VMs will take. */
  amounts: QuotaAmounts
  candidates: Candidate[]
}

/** A location where the request can be granted. */
interface Candidate {
  location: string
  /** The host that has the local disks and the custom image of the request; null for any host. */
  hostId: string | null
}

/** Checks the body as the creation or start would, except for stock, quota and budget. */
export function readWanted(
  tx: Tx,
  catalogue: CatalogueCache,
  by: ProjectRequester,
  body: CapacityRequestCreate,
): Promise<WantedCapacity> {
  const { vm, instance_group: group, start_vm_id: stopped } = body
  if ([vm, group, stopped].filter((each) => each !== undefined).length !== 1)
    throw new Failure('invalid_argument', 'Send exactly one of vm, instance_group and start_vm_id.')
  if (body.hold_seconds !== undefined && body.on_available !== 'hold')
    throw invalidField('hold_seconds', 'requires on_available: hold')
  if (group) return readWantedGroup(tx, catalogue, by, body, group)
  return stopped === undefined
    ? readWantedVm(tx, catalogue, by, body)
    : readWantedStart(tx, by, body, stopped)
}

async function readWantedVm(
  tx: Tx,
  catalogue: CatalogueCache,
  by: ProjectRequester,
  body: CapacityRequestCreate,
): Promise<WantedCapacity> {
  const vm = await completeVmBody(tx, by.projectId, body.vm!).catch((error) => {
    throw nestFailure('vm', error)
  })
  if ((await findVmName(tx, { projectId: by.projectId, name: vm.name })).isTaken)
    throw nameTaken('VM', vm.name)
  const { candidates, amounts } = await planCandidates(tx, catalogue, by, vm, {
    field: 'vm',
    locations: body.locations,
    count: 1,
  })
  const type = vmType(vm.type)!
  return {
    body: { ...body, vm },
    type,
    vms: 1,
    isSpread: false,
    ttlSeconds: vm.ttl_seconds ?? null,
    amounts,
    candidates: requireOffered('vm/type', type.name, candidates, await listOffering(tx, type)),
  }
}

async function readWantedGroup(
  tx: Tx,
  catalogue: CatalogueCache,
  by: ProjectRequester,
  body: CapacityRequestCreate,
  group: InstanceGroupCreate,
): Promise<WantedCapacity> {
  const { name, desired_count: count, template_id, vm: members = {} } = group
  const policy = await policyOf(tx, by, group)
  const shape = { name, template_id: template_id ?? null, vm: members }
  const vm = await memberBody(tx, by, shape, 1).catch((error) => {
    throw nestFailure('instance_group/vm', error)
  })
  await requireFreeNames(tx, by, group)
  const { candidates, amounts } = await planCandidates(tx, catalogue, by, vm, {
    field: 'instance_group/vm',
    locations: body.locations,
    count,
  })
  const type = vmType(vm.type)!
  const isSpread = policy === 'spread'
  const room = await listGroupOffering(tx, type)
  const offering = room.filter(({ vms, hosts }) => (isSpread ? hosts : vms) >= count)
  const what = `${count} × ${type.name}${isSpread ? ', each on a separate host' : ''}`
  return {
    body: { ...body, instance_group: { ...group, placement_policy: policy } },
    type,
    vms: count,
    isSpread,
    ttlSeconds: vm.ttl_seconds ?? null,
    amounts: timesCount(amounts, count),
    candidates: requireOffered(
      'instance_group/desired_count',
      what,
      candidates,
      offering.map(({ location }) => location),
    ),
  }
}

async function requireFreeNames(
  tx: Tx,
  { projectId }: ProjectRequester,
  group: InstanceGroupCreate,
): Promise<void> {
  const { name, desired_count: count } = group
  const page = { beforeId: null, limit: 1 }
  if ((await listGroups(tx, { projectId, names: [name], labels: null, ...page })).length > 0)
    throw nameTaken('instance group', name)
  const names = Array.from({ length: count }, (_, index) => memberName(group, index + 1))
  const found = await Promise.all(names.map((each) => findVmName(tx, { projectId, name: each })))
  const taken = names.find((_, index) => found[index]!.isTaken)
  if (taken) throw nameTaken('VM', taken)
}

/** Checks the VM in each location. With `any`, a location that cannot run it is left out. */
async function planCandidates(
  tx: Tx,
  catalogue: CatalogueCache,
  by: ProjectRequester,
  vm: VmBody,
  { field, locations, count }: { field: string; locations: string[] | undefined; count: number },
): Promise<{ candidates: Candidate[]; amounts: QuotaAmounts }> {
  const isAny = locations === undefined && vm.location === anyLocation
  const wanted = isAny ? (await listLocations(tx)).map(({ name }) => name) : (locations ?? [vm.location])
  const candidates: Candidate[] = []
  let amounts: QuotaAmounts = {}
  let refusal: unknown
  for (const location of wanted)
    try {
      const planned = await planAt(tx, catalogue, by, { ...vm, location }, count)
      candidates.push({ location, hostId: planned.hostId })
      amounts = planned.amounts
    } catch (error) {
      if (!isAny || !(error instanceof Failure)) throw nestFailure(field, error)
      refusal = error
    }
  if (candidates.length === 0) throw nestFailure(field, refusal)
  return { candidates, amounts }
}

/** Checks the VM for one location. Returns the host of its disks and custom image where storage is local, and the quota of one VM. */
async function planAt(tx: Tx, catalogue: CatalogueCache, by: ProjectRequester, vm: VmBody, count: number) {
  const plan = await planVm(tx, catalogue, by, vm)
  const { location, type } = plan
  const disks = await lockDisksFor(tx, by.projectId, 'disks', vm.disks, { location: location.name, type })
  requireShareable(disks, count)
  await requireFree(tx, disks)
  const hosts = hostsFor(plan, disks)
  if (hosts.length > 1) throw notOnOneHost()
  return { hostId: hosts[0] ?? null, amounts: quotaOf(plan).amounts }
}

/** Checks a request to start a stopped VM, which needs only GPUs. */
async function readWantedStart(
  tx: Tx,
  by: ProjectRequester,
  body: CapacityRequestCreate,
  vmId: string,
): Promise<WantedCapacity> {
  if (body.locations !== undefined)
    throw invalidField('locations', 'must be absent with start_vm_id: a VM stays in its location')
  const vm = requireFound('VM', await lockVm(tx, { projectId: by.projectId, id: vmId }))
  if (vm.state !== 'STATE_SHUTOFF' || vm.os_disk_lost_at)
    throw new Failure(
      'conflict',
      vm.os_disk_lost_at
        ? `The VM ${vm.name} cannot be started because its OS disk is lost.`
        : `START requires the VM to be in STATE_SHUTOFF; it is in ${vm.state}.`,
    )
  const isLocal = (await findLocation(tx, vm.location))?.storage === 'local'
  const type = vmType(vm.type)!
  const candidates = [{ location: vm.location, hostId: isLocal ? vm.host_id : null }]
  return {
    body,
    type,
    vms: 1,
    isSpread: false,
    ttlSeconds: null,
    amounts: { [gpuQuota(type.family)]: type.gpuCount },
    candidates: requireOffered('start_vm_id', type.name, candidates, await listOffering(tx, type)),
  }
}

/** Leaves out locations that have too few hosts of this size, since waiting would not help there. */
function requireOffered(
  field: string,
  what: string,
  candidates: Candidate[],
  offering: string[],
): Candidate[] {
  const possible = candidates.filter(({ location }) => offering.includes(location))
  if (possible.length > 0) return possible
  throw invalidField(
    field,
    `the hosts in ${candidates.map(({ location }) => location).join(', ')} cannot run ${what}, even when they are empty. ${offering.length > 0 ? `Locations where this is possible: ${offering.join(', ')}` : 'Choose another type or a smaller number'}`,
  )
}

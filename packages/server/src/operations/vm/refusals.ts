import { anyLocation, type VmType } from '@slipway/contract'
import { type Failure, outOfStock } from '../../domain/failure.ts'
import { TryAgain, type Tx } from '../../postgres/database.ts'
import { time } from '../../postgres/time.ts'
import { findQueueOutlook, type QueueOutlook } from '../../store/capacity/queues.ts'
import { listAvailability, listOffering } from '../../store/compute/placement.ts'
import type { CatalogueCache } from '../catalogue.ts'
import { chooseLocation } from './location.ts'
import type { VmPlan } from './plan.ts'

/** Returns why no host has room for the new VM, or `TryAgain` if the VM may be created in another location. */
export async function noHost(tx: Tx, catalogue: CatalogueCache, plan: VmPlan): Promise<Error> {
  return plan.body.location === anyLocation
    ? tryElsewhere(tx, catalogue, plan)
    : typeOutOfStock(tx, plan.type, plan.location.name)
}

/** Returns why the location's bridges cannot carry the subnet's range, or `TryAgain` if the VM may be created in another location. */
export async function noRange(tx: Tx, catalogue: CatalogueCache, plan: VmPlan): Promise<Error> {
  if (plan.body.location === anyLocation) return tryElsewhere(tx, catalogue, plan)
  const { subnet_id, ...otherSubnet } = plan.body
  const { fitting } = await chooseLocation(tx, catalogue, plan.by.projectId, otherSubnet)
  const { cidr, location } = plan.subnet
  return outOfStock(
    `${plan.type.name} is out of stock in ${location} for this subnet: hosts there support a range for only one network at a time, and VMs of another project use a range that overlaps ${cidr}. Use a subnet with another range${fitting.length > 0 ? `, or another location: ${fitting.join(', ')}` : ''}.`,
    fitting,
  )
}

/** For `location: any`: returns `TryAgain` if the VM fits in another location, or else an `out_of_stock` error. */
async function tryElsewhere(tx: Tx, catalogue: CatalogueCache, { by, body, type }: VmPlan): Promise<Error> {
  const { fitting } = await chooseLocation(tx, catalogue, by.projectId, body)
  if (fitting.length > 0) return new TryAgain('the VM fits in another location')
  const offering = await listOffering(tx, type)
  return outOfStock(
    `${type.name} is out of stock in every location that has the image and a subnet of the project. ${retryHint(offering)}`,
    [],
    { queue: await queueOf(tx, type, offering) },
  )
}

export async function typeOutOfStock(tx: Tx, type: VmType, location: string): Promise<Failure> {
  const [rows, offering] = await Promise.all([listAvailability(tx, [type], null), listOffering(tx, type)])
  const elsewhere = rows
    .filter((row) => row.available && row.location !== location)
    .map((row) => row.location)
  const where = offering.includes(location) ? location : `${location}, which has no host with ${gpusOf(type)}`
  const hint = elsewhere.length > 0 ? `It would fit in ${elsewhere.join(', ')}.` : retryHint(offering)
  return outOfStock(`${type.name} is out of stock in ${where}. ${hint}`, elsewhere, {
    queue: await queueOf(tx, type, offering.includes(location) ? [location] : []),
  })
}

/** Returns the queue in which a new request would probably be granted first; undefined if no queue can help. */
export async function queueOf(tx: Tx, { family, gpuCount: gpus }: VmType, locations: string[]) {
  const queues = await Promise.all(
    locations.map(async (location) => (await findQueueOutlook(tx, { location, family, gpus })) ?? emptyQueue),
  )
  const likelyAt = ({ likely_at }: QueueOutlook) => likely_at?.getTime() ?? Number.POSITIVE_INFINITY
  const [best] = queues.sort((a, b) => likelyAt(a) - likelyAt(b) || a.waiting - b.waiting)
  return best && { length: best.waiting, likely_at: time(best.likely_at) }
}

const emptyQueue: QueueOutlook = { waiting: 0, likely_at: null }

const gpusOf = ({ gpuCount, gpuModel }: VmType) =>
  gpuCount === 1 ? `an ${gpuModel} GPU` : `${gpuCount} ${gpuModel} GPUs`

/** Waiting helps only in locations where a host is large enough for the VM. */
const retryHint = (offering: string[]) =>
  offering.length > 0
    ? `Try again later in ${offering.join(' or ')}.`
    : 'No location has a host in service that can run this type. Choose another type.'

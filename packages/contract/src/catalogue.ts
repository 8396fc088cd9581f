import Type, { type Static } from 'typebox'
import { DiskCreate } from './disks.ts'
import { defineRoutes } from './route.ts'
import { body, CommaList, NonEmptyTimestamp, record, Uuid, wholeList } from './schema.ts'
import { hoursPerMonth, quotaNames } from './vm-types.ts'
import { VmCreate } from './vms.ts'

export const Location = record('Location', {
  name: Type.String({ examples: ['us-east1-a'] }),
  region: Type.String({ examples: ['us-east1'] }),
  zone: Type.String({ examples: ['a'] }),
  description: Type.String(),
})
export type Location = Static<typeof Location>

export const Availability = record('Availability', {
  type: Type.String({ examples: ['a100.1x'] }),
  location: Type.String({ examples: ['us-east1-a'] }),
  available: Type.Boolean(),
})

export const Capacity = record('Capacity', {
  type: Type.String({ examples: ['a100.1x'] }),
  location: Type.String({ examples: ['us-east1-a'] }),
  quantity: Type.Integer({ description: 'How many more VMs of this type fit now.' }),
})

export const Spec = record('Spec', {
  product_name: Type.String({ examples: ['a100.1x'] }),
  description: Type.String(),
  cpu_cores: Type.Integer(),
  cpu_type: Type.String(),
  memory_gb: Type.Integer(),
  memory_type: Type.String(),
  disk_gb: Type.Integer(),
  disk_type: Type.String(),
  num_gpu: Type.Integer(),
  gpu_type: Type.String(),
})

export const Image = record('Image', {
  id: Uuid,
  name: Type.String({ examples: ['ubuntu24.04-nvidia:latest'] }),
  description: Type.String(),
  tags: Type.Array(Type.String()),
  created_at: NonEmptyTimestamp,
  locations: Type.Array(Type.String()),
  size_bytes: Type.Integer({
    format: 'int64',
    description: 'The size of the image file. 0 if it is not known, as for images of simulated locations.',
    examples: [2361393152],
  }),
})
export type Image = Static<typeof Image>

export const Price = record('Price', {
  product_name: Type.String({ examples: ['persistent-ssd'] }),
  unit: Type.Enum(['vm_hour', 'gb_hour', 'address_hour']),
  usd: Type.Number({ minimum: 0, examples: [0.00013] }),
})
export type Price = Static<typeof Price>

export const Quota = record('Quota', {
  name: Type.Enum([...quotaNames]),
  max: Type.Integer({ description: 'The limit of the project or of its organization, whichever is lower.' }),
  used: Type.Integer({ description: 'How much this project uses.' }),
  available: Type.Integer({ description: 'How much the project can still use within both limits.' }),
})
export type Quota = Static<typeof Quota>

export const Estimate = record('Estimate', {
  items: Type.Array(
    Type.Object({
      product_name: Type.String(),
      quantity: Type.Number(),
      unit: Type.Enum(['vm_hour', 'gb_hour', 'address_hour']),
      usd_per_hour: Type.Union([Type.Number(), Type.Null()]),
    }),
  ),
  usd_per_hour: Type.Union([Type.Number(), Type.Null()]),
  usd_per_month: Type.Union([Type.Number(), Type.Null()], {
    description: `The price of ${hoursPerMonth} hours.`,
  }),
})

const offered = {
  type: Type.String({ examples: ['a100.1x'] }),
  location: Type.String({ examples: ['us-east1-a'] }),
  gpu_model: Type.String({ examples: ['A100 40GB PCIe'] }),
  gpu_count: Type.Integer({ examples: [1] }),
  gpu_memory_gb: Type.Integer({ description: 'The memory of each GPU.', examples: [40] }),
  cpu_cores: Type.Integer({ examples: [12] }),
  memory_gb: Type.Integer({ examples: [120] }),
  scratch_gb: Type.Integer({
    description: 'Size of the local NVMe disk. Its data is lost when the VM stops.',
    examples: [960],
  }),
  network_gbps: Type.Integer({
    description: 'The maximum bandwidth of a VM in each direction, in Gbit/s.',
    examples: [25],
  }),
  usd_per_hour: Type.Union([Type.Number(), Type.Null()], {
    description: 'Null if no price is set.',
    examples: [1.45],
  }),
}

export const Offer = record('Offer', {
  ...offered,
  quantity: Type.Integer({ description: 'How many more VMs of this type fit now.', examples: [22] }),
  quota_left: Type.Integer({
    description: 'How many more VMs of this type the quotas allow.',
    examples: [8],
  }),
})
export type Offer = Static<typeof Offer>

export const CatalogueItem = record('CatalogueItem', {
  ...offered,
  available: Type.Boolean({ description: 'Whether one more VM of this type fits now.', examples: [true] }),
})
export type CatalogueItem = Static<typeof CatalogueItem>

const OfferQuery = Type.Object({
  gpu_model: Type.Optional(
    Type.String({
      maxLength: 100,
      description:
        'A GPU model or the beginning of its name, for example `a100`, `a100-80gb` or `L40S`. Letter case is ignored.',
    }),
  ),
  min_gpu_count: Type.Optional(
    Type.Integer({ minimum: 0, maximum: 1000, description: 'The minimum number of GPUs.' }),
  ),
  min_gpu_memory_gb: Type.Optional(
    Type.Integer({ minimum: 0, maximum: 1_000_000, description: 'The minimum memory of each GPU.' }),
  ),
  max_usd_per_hour: Type.Optional(
    Type.Number({ minimum: 0, description: 'The maximum price. Types without a price are excluded.' }),
  ),
  locations: CommaList('Locations'),
  available: Type.Optional(
    Type.Boolean({
      description: 'If `true`, only types that can be created now: in stock and within the quotas.',
    }),
  ),
})
export type OfferQuery = Static<typeof OfferQuery>

const typeAndLocation = Type.Object({
  product_name: Type.Optional(Type.String({ maxLength: 100, description: 'Only this VM type.' })),
  location: Type.Optional(Type.String({ maxLength: 100 })),
})

export const catalogueRoutes = defineRoutes({
  locationList: {
    method: 'GET',
    path: '/v0.1/projects/{project_id}/locations',
    tag: 'Catalogue',
    summary: 'List locations',
    access: 'viewer',
    response: wholeList('LocationList', Location),
  },
  availabilityList: {
    method: 'GET',
    path: '/v0.1/projects/{project_id}/availabilities',
    tag: 'Catalogue',
    summary: 'List which VM types are available in which locations',
    access: 'viewer',
    query: typeAndLocation,
    response: wholeList('AvailabilityList', Availability),
  },
  capacityList: {
    method: 'GET',
    path: '/v0.1/projects/{project_id}/capacities',
    tag: 'Catalogue',
    summary: 'List how many more VMs of each type fit now',
    access: 'viewer',
    query: typeAndLocation,
    response: wholeList('CapacityList', Capacity),
  },
  specList: {
    method: 'GET',
    path: '/v0.1/projects/{project_id}/specs',
    tag: 'Catalogue',
    summary: 'List the VM types',
    access: 'viewer',
    response: wholeList('SpecList', Spec),
  },
  imageList: {
    method: 'GET',
    path: '/v0.1/projects/{project_id}/images',
    tag: 'Catalogue',
    summary: 'List images',
    access: 'viewer',
    response: wholeList('ImageList', Image),
  },
  priceList: {
    method: 'GET',
    path: '/v0.1/projects/{project_id}/prices',
    tag: 'Catalogue',
    summary: 'List current prices',
    access: 'viewer',
    response: wholeList('PriceList', Price),
  },
  quotaList: {
    method: 'GET',
    path: '/v0.1/projects/{project_id}/quotas',
    tag: 'Catalogue',
    summary: 'List quotas and their usage',
    access: 'viewer',
    response: wholeList('QuotaList', Quota),
  },
  offerList: {
    method: 'GET',
    path: '/v0.1/projects/{project_id}/offers',
    tag: 'Catalogue',
    summary: 'List every VM type in every location, with price, stock and quota',
    description: 'Sorted by price, cheapest first; types without a price come last.',
    access: 'viewer',
    query: OfferQuery,
    response: wholeList('OfferList', Offer),
  },
  catalogueList: {
    method: 'GET',
    path: '/v0.1/catalogue',
    tag: 'Catalogue',
    summary: 'List every VM type in every location, without authentication',
    description:
      'Has the same items and filters as the offers of a project, without quotas. The data is at most one second old. The operator of the service can disable access without a credential.',
    access: 'public',
    query: OfferQuery,
    response: wholeList('Catalogue', CatalogueItem),
    errors: ['unauthenticated'],
  },
  estimateCreate: {
    method: 'POST',
    path: '/v0.1/projects/{project_id}/estimates',
    changesNothing: true,
    tag: 'Catalogue',
    summary: 'Estimate the cost of a VM or disk',
    description:
      'Send exactly one of `vm` and `disk`. If the creation would fail, the estimate fails with the same error.',
    access: 'viewer',
    costsMoney: true,
    body: body('EstimateRequest', { vm: Type.Optional(VmCreate), disk: Type.Optional(DiskCreate) }),
    response: Estimate,
    errors: ['already_exists', 'conflict', 'out_of_stock', 'quota_exceeded'],
  },
})

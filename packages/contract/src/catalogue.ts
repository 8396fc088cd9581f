import Type, { type Static } from 'typebox'
import { DiskCreate } from './disks.ts'
import { defineRoutes } from './route.ts'
import { body, record, Timestamp, Uuid, wholeList } from './schema.ts'
import { quotaNames } from './vm-types.ts'
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
  quantity: Type.Integer({ description: 'How many more such VMs fit now.' }),
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
  created_at: Timestamp,
  locations: Type.Array(Type.String()),
})
export type Image = Static<typeof Image>

export const Price = record('Price', {
  product_name: Type.String({ examples: ['persistent-ssd'] }),
  unit: Type.Enum(['vm_hour', 'gb_hour']),
  usd: Type.Number({ minimum: 0, examples: [0.00013] }),
})
export type Price = Static<typeof Price>

export const Quota = record('Quota', {
  name: Type.Enum([...quotaNames]),
  max: Type.Integer({ description: 'Of the project or of its organization, whichever is less.' }),
  used: Type.Integer({ description: 'By this project.' }),
  available: Type.Integer({ description: 'What the project and its organization both have left.' }),
})
export type Quota = Static<typeof Quota>

export const Estimate = record('Estimate', {
  items: Type.Array(
    Type.Object({
      product_name: Type.String(),
      quantity: Type.Number(),
      unit: Type.Enum(['vm_hour', 'gb_hour']),
      usd_per_hour: Type.Union([Type.Number(), Type.Null()]),
    }),
  ),
  usd_per_hour: Type.Union([Type.Number(), Type.Null()]),
  usd_per_month: Type.Union([Type.Number(), Type.Null()], { description: '730 hours.' }),
})

const typeAndLocation = Type.Object({
  product_name: Type.Optional(Type.String({ maxLength: 100, description: 'A VM type.' })),
  location: Type.Optional(Type.String({ maxLength: 100 })),
})

export const catalogueRoutes = defineRoutes({
  locationList: {
    method: 'GET',
    path: '/v0.1/projects/{project_id}/locations',
    tag: 'Catalogue',
    summary: 'List locations',
    access: 'viewer',
    answer: wholeList('LocationList', Location),
  },
  availabilityList: {
    method: 'GET',
    path: '/v0.1/projects/{project_id}/availabilities',
    tag: 'Catalogue',
    summary: 'Which type can be had where, now',
    access: 'viewer',
    query: typeAndLocation,
    answer: wholeList('AvailabilityList', Availability),
  },
  capacityList: {
    method: 'GET',
    path: '/v0.1/projects/{project_id}/capacities',
    tag: 'Catalogue',
    summary: 'How many more VMs of each type fit, now',
    access: 'viewer',
    query: typeAndLocation,
    answer: wholeList('CapacityList', Capacity),
  },
  specList: {
    method: 'GET',
    path: '/v0.1/projects/{project_id}/specs',
    tag: 'Catalogue',
    summary: 'List the VM types',
    access: 'viewer',
    answer: wholeList('SpecList', Spec),
  },
  imageList: {
    method: 'GET',
    path: '/v0.1/projects/{project_id}/images',
    tag: 'Catalogue',
    summary: 'List images',
    access: 'viewer',
    answer: wholeList('ImageList', Image),
  },
  priceList: {
    method: 'GET',
    path: '/v0.1/projects/{project_id}/prices',
    tag: 'Catalogue',
    summary: 'List prices in force',
    access: 'viewer',
    answer: wholeList('PriceList', Price),
  },
  quotaList: {
    method: 'GET',
    path: '/v0.1/projects/{project_id}/quotas',
    tag: 'Catalogue',
    summary: 'List quotas and what is used of them',
    access: 'viewer',
    answer: wholeList('QuotaList', Quota),
  },
  estimateCreate: {
    method: 'POST',
    path: '/v0.1/projects/{project_id}/estimates',
    changesNothing: true,
    tag: 'Catalogue',
    summary: 'What a VM or disk would cost',
    description: 'Exactly one of `vm` and `disk`; refused with the very error that the creation would give.',
    access: 'viewer',
    costsMoney: true,
    body: body('EstimateRequest', { vm: Type.Optional(VmCreate), disk: Type.Optional(DiskCreate) }),
    answer: Estimate,
    errors: ['already_exists', 'conflict', 'out_of_stock', 'quota_exceeded'],
  },
})

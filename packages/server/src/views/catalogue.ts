import {
  type Host,
  type Image,
  type OrganizationQuota,
  organizationQuotaNames,
  type Price,
  productUnits,
  type Quota,
  type QuotaRequest,
  quotaNames,
  type VmType,
} from '@slipway/contract'
import { time } from '../postgres/time.ts'
import type { PriceRow } from '../store/billing/prices.ts'
import type { OrganizationQuotaRow } from '../store/compute/organization-quotas.ts'
import type { QuotaRow } from '../store/compute/quotas.ts'
import type { HostRow } from '../store/fleet/fleet.ts'
import type { ImageRow } from '../store/fleet/images.ts'
import type { LocationRow } from '../store/fleet/locations.ts'
import type { QuotaRequestRow } from '../store/identity/quota-requests.ts'

export const locationView = ({ name, region, zone, description }: LocationRow) => ({
  name,
  region,
  zone,
  description,
})

export const adminLocationView = (row: LocationRow) => ({
  ...locationView(row),
  engine: row.engine,
  storage: row.storage,
  public_ipv4: row.public_ipv4 ?? '',
  engine_problem: row.engine_problem,
})

export const specView = (type: VmType) => ({
  product_name: type.name,
  description: `${type.gpuCount} x ${type.gpuModel}, ${type.cpuCores} cores, ${type.memoryGb} GB memory`,
  cpu_cores: type.cpuCores,
  cpu_type: 'x86_64',
  memory_gb: type.memoryGb,
  memory_type: 'DDR4',
  disk_gb: type.nvmeGb,
  disk_type: type.nvmeGb > 0 ? 'NVMe' : '',
  num_gpu: type.gpuCount,
  gpu_type: type.gpuModel,
})

export const imageView = (row: ImageRow): Image => ({
  id: row.id,
  name: row.name,
  description: row.description,
  tags: row.tags,
  created_at: time(row.created_at),
  locations: row.locations,
  size_bytes: typeof row.source.sizeBytes === 'number' ? row.source.sizeBytes : 0,
})

const products = [...productUnits.keys()]

/** Sorts prices in the order of the catalogue: VM types, then disks, then copies of disks. */
export const priceViews = (rows: (PriceRow & Pick<Price, 'unit'>)[]): Price[] =>
  rows
    .toSorted((a, b) => products.indexOf(a.product_name) - products.indexOf(b.product_name))
    .map(({ product_name, unit, usd }) => ({ product_name, unit, usd: Number(usd) }))

export const quotaViews = (rows: QuotaRow[]): Quota[] =>
  rows.toSorted((a, b) => quotaNames.indexOf(a.name) - quotaNames.indexOf(b.name))

export const organizationQuotaViews = (rows: OrganizationQuotaRow[]): OrganizationQuota[] =>
  rows.toSorted((a, b) => organizationQuotaNames.indexOf(a.name) - organizationQuotaNames.indexOf(b.name))

export const quotaRequestView = (row: QuotaRequestRow): QuotaRequest => ({
  id: row.id,
  organization_id: row.organization_id,
  organization_name: row.organization_name,
  name: row.name,
  max: row.max,
  current_max: row.current_max,
  reason: row.reason,
  state: row.state,
  requested_by: row.requested_by,
  note: row.note,
  created_at: time(row.created_at),
  decided_at: time(row.decided_at),
})

export const hostView = (row: HostRow): Host => ({
  id: row.id,
  name: row.name,
  location: row.location,
  engine: row.engine,
  schedulable: row.is_schedulable,
  state: row.state,
  last_report_at: time(row.reported_at),
  forgotten_at: time(row.forgotten_at),
  draining_since: time(row.draining_since),
  vms_at_drain: row.vms_at_drain,
  note: row.note,
  note_at: time(row.note_at),
  note_by: row.note_by,
  maintenance_at: time(row.maintenance_at),
  maintenance_note: row.maintenance_note,
  capabilities: row.capabilities,
  gpus: row.gpus,
  vms: row.vms,
})

import { listRecords } from '../engine/records.ts'
import type { ResourceRow } from '../engine/row.ts'
import { exactlyOneOf } from './checks.ts'
import { gibOf, sameSize } from './equivalents.ts'

const annotations = { labels: {}, description: '', deletion_protection: false }

/** Removes the rounding error of a floating-point product. */
const roundUsd = (usd: number) => Number(usd.toFixed(8))

export const storageRows: ResourceRow[] = [
  {
    name: 'disk',
    noun: 'disk',
    description: 'A persistent disk or a shared volume.',
    routes: 'disk',
    example: `resource "slipway_disk" "example" {
  name     = "datasets"
  size     = "500GiB"
  location = "us-east1-a"
}`,
    notes: { attached_to: 'The VMs that the disk is attached to.' },
    fixed: ['serial_number'],
    related: ['attached_to'],
    local: {
      usd_per_hour: {
        type: 'number',
        description: 'The price of the disk per hour. Null if no price is set.',
        isComputed: true,
      },
    },
    async extend(session, project_id, { type, size }) {
      const prices = await listRecords(session, 'priceList', { project_id })
      const price = prices.find(({ product_name }) => product_name === type)?.usd
      return { usd_per_hour: typeof price === 'number' ? roundUsd(price * gibOf(String(size))) : null }
    },
    defaults: { ...annotations, type: 'persistent-ssd' },
    equivalent: { size: sameSize },
    checkChange(prior, planned) {
      const [from, to] = [prior.size, planned.size].map((size) =>
        typeof size === 'string' ? gibOf(size) : 0,
      )
      if (!from || !to || to >= from) return {}
      const detail = `The disk has ${String(prior.size)}, but the configuration specifies ${String(planned.size)}. A disk can only grow.`
      return { problems: [{ summary: 'The disk cannot shrink', detail, attribute: 'size' }] }
    },
  },
  {
    name: 'snapshot',
    noun: 'snapshot',
    description: 'The content of a disk at one point in time.',
    routes: 'snapshot',
    example: `resource "slipway_disk" "source" {
  name     = "datasets"
  size     = "10GiB"
  location = "us-east1-a"
}

resource "slipway_snapshot" "example" {
  name    = "datasets-monday"
  disk_id = slipway_disk.source.id
}`,
    fixed: ['created_from', 'size', 'block_size', 'location', 'consistency', 'stored_bytes'],
    inPlace: ['require_frozen'],
    defaults: annotations,
  },
  {
    name: 'custom_image',
    noun: 'custom image',
    description: 'An image that is created from a VM, a disk or a snapshot.',
    routes: 'customImage',
    example: `resource "slipway_vm" "source" {
  name           = "golden"
  type           = "a100.1x"
  location       = "us-east1-a"
  image          = "ubuntu24.04-nvidia:latest"
  ssh_public_key = file("id_ed25519.pub")
}

resource "slipway_custom_image" "example" {
  name                   = "golden:v1"
  vm_id                  = slipway_vm.source.id
  allow_crash_consistent = true
}`,
    fixed: ['source_id', 'size', 'locations', 'consistency', 'stored_bytes'],
    inPlace: ['allow_crash_consistent'],
    defaults: annotations,
    checkConfig: exactlyOneOf('custom image', ['vm_id', 'disk_id', 'snapshot_id']),
  },
]

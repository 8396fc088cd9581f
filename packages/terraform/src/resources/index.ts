import { defineListSource, defineRecordSource } from '../engine/data-source.ts'
import { defineResource, isInContract } from '../engine/resource.ts'
import type { ResourceRow } from '../engine/row.ts'
import { accountRows } from './account.ts'
import { instanceRows } from './instances.ts'
import { networkRows } from './network.ts'
import { storageRows } from './storage.ts'
import { vm } from './vm.ts'

const rows: ResourceRow[] = [vm, ...instanceRows, ...storageRows, ...networkRows, ...accountRows]

/** All resources whose routes are in the contract. */
export const resources = rows.filter(isInContract).map(defineResource)

const catalogue = [
  {
    name: 'offers',
    list: 'offerList' as const,
    description: 'Every VM type in every location, with price, stock and quota, sorted by price.',
    example: `data "slipway_offers" "example" {
  gpu_model = "a100"
  available = true
}

output "cheapest" {
  value = data.slipway_offers.example.items[0].type
}`,
  },
  {
    name: 'images',
    list: 'imageList' as const,
    description: 'The images that VMs can be created from.',
    example: 'data "slipway_images" "example" {}',
  },
  {
    name: 'locations',
    list: 'locationList' as const,
    description: 'The locations where VMs can run.',
    example: 'data "slipway_locations" "example" {}',
  },
  {
    name: 'types',
    list: 'specList' as const,
    description: 'The VM types with their GPUs, cores, memory and disks.',
    example: 'data "slipway_types" "example" {}',
  },
]

export const dataSources = [...catalogue.map(defineListSource), ...resources.map(defineRecordSource)]

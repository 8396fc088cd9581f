import type { ResourceRow } from '../engine/row.ts'
import type { Value, Values } from '../values/types.ts'
import { sameSize } from './equivalents.ts'

const scripts = ['startup_script', 'shutdown_script']

export const instanceRows: ResourceRow[] = [
  {
    name: 'instance_template',
    noun: 'instance template',
    description:
      'A version of a template for VMs and instance groups. A version never changes; every change creates a new version.',
    routes: 'instanceTemplate',
    example: `resource "slipway_instance_template" "example" {
  name           = "trainer"
  type           = "a100.1x"
  location       = "us-east1-a"
  image          = "ubuntu24.04-nvidia:latest"
  ssh_public_key = file("id_ed25519.pub")
  new_disks      = [{ size = "100GiB" }]
}`,
    sensitive: scripts,
    inPlace: ['new_version'],
    equivalent: { os_disk_size: sameSize },
  },
  {
    name: 'instance_group',
    noun: 'instance group',
    description: 'VMs that are created, started and deleted together.',
    routes: 'instanceGroup',
    example: `resource "slipway_instance_group" "example" {
  name          = "trainer"
  desired_count = 2
  vm = {
    type           = "a100.1x"
    location       = "us-east1-a"
    image          = "ubuntu24.04-nvidia:latest"
    ssh_public_key = file("id_ed25519.pub")
  }
}`,
    notes: {
      location: 'The location of all members.',
      members: 'The members, sorted by number.',
    },
    fixed: ['location'],
    defaults: {
      ...{ labels: {}, description: '', deletion_protection: false },
      ...{ on_member_loss: 'none' },
    },
    local: {
      delete_disks: {
        type: 'bool',
        description:
          'Whether a deletion of the group also deletes the disks that were created with its members.',
      },
    },
    checkConfig: ({ template_id = null, vm = null }: Values) =>
      template_id === null && vm === null
        ? [{ summary: 'Invalid instance group', detail: 'Set vm, template_id or both.', attribute: 'vm' }]
        : [],
    deleteQuery: ({ delete_disks }: { [name: string]: Value }) => ({
      delete_disks: delete_disks === true || undefined,
    }),
  },
]

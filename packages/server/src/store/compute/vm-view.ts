import { osDiskGib, type Vm } from '@slipway/contract'
import type { Queryable } from '../database.ts'
import { filteredStatement, isBefore, statement } from '../statement.ts'
import { time } from '../time.ts'
import { attachedDisksOfVm, serialNumberOf, type VmRow } from './vms.ts'

const plainColumns = [
  ...(['id', 'project_id', 'name', 'type', 'location', 'state', 'image', 'ssh_destination'] as const),
  ...(['os_disk_id', 'interface_id', 'network_id', 'subnet_id', 'mac_address', 'private_address'] as const),
  ...(['public_address', 'public_address_id', 'on_expiry'] as const),
] as const
const timeColumns = ['expires_at', 'created_at', 'updated_at'] as const

/** What a record needs of a VM. Reading is what clients do most: nothing else is read for it. */
export type VmViewRow = Pick<VmRow, (typeof plainColumns)[number] | 'disks'> &
  Record<(typeof timeColumns)[number], Date | string | null>

const fields = [...plainColumns, ...timeColumns].map((column) => `'${column}', v.${column}`).join(', ')
// It is one column: the client spends about as much time on each as on parsing them all as JSON.
const selectRecord = `SELECT json_build_object(${fields}, 'disks', ${attachedDisksOfVm}) AS record FROM vms v`

type Found = { record: VmViewRow }

const byId = statement<Found, { projectId: string; id: string }>(
  'vm_record',
  `${selectRecord} WHERE v.id = :id AND v.project_id = :projectId AND v.deleted_at IS NULL`,
)

const list = filteredStatement<Found, VmFilter>(
  'vm_record_list',
  (given) => `${selectRecord}
   WHERE v.project_id = :projectId AND v.deleted_at IS NULL AND ${isBefore('v.id')}
     AND (:types::text[] IS NULL OR v.type = ANY (:types))
     AND (:locations::text[] IS NULL OR v.location = ANY (:locations))
     AND (:states::text[] IS NULL OR v.state = ANY (:states)) ${given}
   ORDER BY v.id DESC LIMIT :limit`,
  { ids: 'v.id = ANY (:ids)', names: 'v.name = ANY (:names)' },
)

export async function findVmView(db: Queryable, projectId: string, id: string) {
  return (await byId.one(db, { projectId, id }))?.record
}

export interface VmFilter {
  projectId: string
  beforeId: string | null
  ids: string[] | null
  names: string[] | null
  types: string[] | null
  locations: string[] | null
  states: string[] | null
  limit: number
}

export async function listVmViews(db: Queryable, filter: VmFilter): Promise<VmViewRow[]> {
  return (await list.all(db, filter)).map(({ record }) => record)
}

/** The record that clients see. */
export function vmView(vm: VmViewRow): Vm {
  const createdAt = time(vm.created_at)
  const osDisk = {
    id: vm.os_disk_id,
    name: `${vm.name}-os`,
    type: 'persistent-ssd',
    size: `${osDiskGib}GiB`,
    location: vm.location,
    block_size: 0,
    created_at: createdAt,
    updated_at: createdAt,
    serial_number: serialNumberOf(vm.os_disk_id),
    attachment_type: 'os' as const,
    mode: 'read-write' as const,
  }
  return {
    id: vm.id,
    project_id: vm.project_id,
    type: vm.type,
    state: vm.state,
    ssh_destination: vm.ssh_destination,
    created_at: createdAt,
    updated_at: time(vm.updated_at),
    name: vm.name,
    location: vm.location,
    commitment_period: 0,
    commitment_end: '',
    disks: [
      osDisk,
      ...vm.disks.map((disk) => ({
        id: disk.id,
        name: disk.name,
        type: disk.type,
        size: disk.size,
        location: disk.location,
        block_size: disk.block_size,
        created_at: time(disk.created_at),
        updated_at: time(disk.updated_at),
        serial_number: disk.serial_number,
        attachment_type: 'data' as const,
        mode: disk.mode,
      })),
    ],
    network_interfaces: [
      {
        id: vm.interface_id,
        name: 'nic0',
        network: vm.network_id,
        subnet: vm.subnet_id,
        interface_type: 'Ethernet' as const,
        mac_address: vm.mac_address,
        ips: [
          {
            private_ipv4: { address: vm.private_address },
            public_ipv4: {
              address: vm.public_address ?? '',
              id: vm.public_address_id ?? '',
              type: vm.public_address ? 'dynamic' : '',
            },
          },
        ],
      },
    ],
    host_channel_adapters: [],
    virtualization_features: { nested_virtualization: false },
    instance_template_id: '',
    instance_group_id: '',
    reservation_id: '',
    image: vm.image,
    expires_at: time(vm.expires_at),
    on_expiry: vm.on_expiry,
  }
}

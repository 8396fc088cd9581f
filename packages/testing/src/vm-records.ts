import { isDeepStrictEqual } from 'node:util'
import { families, type Vm } from '@slipway/contract'
import { time } from '@slipway/server/postgres/time.ts'
import { billing, vmRecord } from '@slipway/server/store/compute/vm-view.ts'
import { serialNumberOf, type VmDiskRow, type VmRow } from '@slipway/server/store/compute/vms.ts'
import type { TestService } from './service.ts'

type Row<T> = { [Name in keyof T]: T[Name] extends Date | null ? string | null : T[Name] }

interface Joined {
  /** The record that clients read. */
  record: string
  vm: Row<VmRow>
  disks: VmDiskRow[] | null
  price: string | null
  cost: string
  /** The reservation that the VM uses. */
  months: number | null
  contract_end: string | null
}

/** Everything is read in one statement, because the cost of a running VM grows with time. */
const joined = `
  SELECT ${vmRecord} AS record, to_json(v) AS vm, p.usd::text AS price,
         (SELECT term_months(r.term) FROM reservations r WHERE r.id = v.reservation_id) AS months,
         (SELECT upper(term) FROM reservations r WHERE r.id = v.reservation_id) AS contract_end,
         (SELECT json_agg(to_jsonb(d) || jsonb_build_object('mode', a.mode) ORDER BY a.position)
          FROM disk_attachments a JOIN disks d ON d.id = a.disk_id WHERE a.vm_id = v.id) AS disks,
         (SELECT round(coalesce(sum(metered_cost(product_name, quantity, period * tstzrange(NULL, t.now))), 0) / 3600000, 6)
          FROM usage_intervals WHERE resource_id = v.id)::text AS cost
  FROM vms v ${billing}`

/** Returns the VMs whose record differs from their row, disks, meters and prices. */
export async function wrongVmRecords({ sql }: Pick<TestService, 'sql'>): Promise<string[]> {
  const rows = await sql<Joined>(joined)
  return rows.flatMap((row) => {
    const [read, expected] = [JSON.parse(row.record), expectedRecord(row)]
    return isDeepStrictEqual(read, expected)
      ? []
      : [`${row.vm.id} has the record ${row.record}, but expected ${JSON.stringify(expected)}`]
  })
}

function healthOf({ state, health, started_at, ...vm }: Joined['vm']): Vm['health'] {
  const isOn = ['STATE_RUNNING', 'STATE_STOPPING', 'STATE_RESETTING', 'STATE_CRASHED'].includes(state)
  const { state_since } = vm as unknown as { state_since: string | null }
  if (!isOn) return { status: 'unknown', since: time(state_since), reasons: [] }
  return health ?? { status: 'healthy', since: time(started_at), reasons: [] }
}

function expectedRecord({ vm, disks, price, cost, months, contract_end }: Joined): Vm {
  return {
    id: vm.id,
    project_id: vm.project_id,
    type: vm.type,
    state: vm.state,
    ssh_destination: vm.ssh_destination,
    created_at: time(vm.created_at),
    updated_at: time(vm.updated_at),
    name: vm.name,
    location: vm.location,
    commitment_period: months ?? 0,
    commitment_end: time(contract_end),
    disks: [osDisk(vm), ...(disks ?? []).map(dataDisk)],
    network_interfaces: [networkInterface(vm)],
    host_channel_adapters: [],
    virtualization_features: { nested_virtualization: false },
    instance_template_id: vm.instance_template_id ?? '',
    instance_group_id: vm.group_id ?? '',
    reservation_id: vm.reservation_id ?? '',
    image: vm.image,
    custom_image_id: vm.custom_image_id ?? '',
    expires_at: time(vm.expires_at),
    on_expiry: vm.on_expiry,
    started_at: time(vm.started_at),
    usd_per_hour: vm.reservation_id ? 0 : price === null ? null : Number(price),
    cost_usd: Number(cost),
    idle_policy: vm.idle_policy,
    idle_since: time(vm.idle_since),
    health: healthOf(vm),
    on_gpu_fault: vm.on_gpu_fault,
    last_replaced_at: time(vm.last_replaced_at),
    labels: vm.labels,
    description: vm.description,
    deletion_protection: vm.is_protected,
    ssh_public_keys: vm.ssh_public_keys,
    ssh_host_keys: vm.ssh_host_key === '' ? [] : [`${knownHost(vm)} ${vm.ssh_host_key}`],
    startup_script_sha256: vm.startup_script_sha256,
    scratch_gb: vm.gpu_count * families[vm.family as keyof typeof families].nvmeGb,
  }
}

const osDisk = (vm: Row<VmRow>): Vm['disks'][number] => ({
  id: vm.os_disk_id,
  name: `${vm.name}-os`,
  type: 'persistent-ssd',
  size: vm.os_disk_size,
  location: vm.location,
  block_size: 0,
  created_at: time(vm.created_at),
  updated_at: time(vm.created_at),
  serial_number: serialNumberOf(vm.os_disk_id),
  attachment_type: 'os',
  mode: 'read-write',
})

const dataDisk = (disk: VmDiskRow): Vm['disks'][number] => ({
  id: disk.id,
  name: disk.name,
  type: disk.type,
  size: disk.size,
  location: disk.location,
  block_size: disk.block_size as 0 | 512 | 4096,
  created_at: time(disk.created_at),
  updated_at: time(disk.updated_at),
  serial_number: disk.serial_number,
  attachment_type: 'data',
  mode: disk.mode,
})

const networkInterface = (vm: Row<VmRow>): Vm['network_interfaces'][number] => ({
  id: vm.interface_id,
  name: 'nic0',
  network: vm.network_id,
  subnet: vm.subnet_id,
  interface_type: 'Ethernet',
  mac_address: vm.mac_address,
  ips: [
    {
      private_ipv4: { address: vm.private_address },
      public_ipv4: {
        address: vm.public_address ?? '',
        id: vm.public_address_id ?? '',
        type: vm.public_address === null ? '' : vm.is_address_static ? 'static' : 'dynamic',
      },
    },
  ],
})

/** Returns the name of the VM in a known_hosts file. */
function knownHost(vm: Row<VmRow>): string {
  const [, host, port] = /@([^:]*)(?::(\d+))?$/.exec(vm.ssh_destination) ?? []
  if (host === undefined) return vm.public_address ?? vm.private_address
  return port === undefined ? host : `[${host}]:${port}`
}

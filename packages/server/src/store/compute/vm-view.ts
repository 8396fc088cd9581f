import { families, familyNames, type LabelSelector, type Vm } from '@slipway/contract'
import type { Queryable, Tx } from '../../postgres/database.ts'
import {
  boolean,
  constant,
  each,
  type Json,
  JsonText,
  json,
  jsonSql,
  list as listOf,
  number,
  object,
  plain,
  text,
  time,
} from '../../postgres/json.ts'
import { keyedStatement } from '../../postgres/keyed.ts'
import { fitsLabels, type LabelParams, labelParams } from '../../postgres/labels.ts'
import { type SortedPage, type SortedRow, sortedStatement } from '../../postgres/sorted.ts'
import { ifGiven, statement } from '../../postgres/statement.ts'
import { rememberedVms, type VmKey } from './remembered-vms.ts'

type VmDisk = Vm['disks'][number]
type VmInterface = Vm['network_interfaces'][number]
type VmAddresses = VmInterface['ips'][number]

const osDisk = object<VmDisk>({
  id: plain('v.os_disk_id'),
  name: text(`v.name || '-os'`),
  type: constant('persistent-ssd'),
  size: text('v.os_disk_size'),
  location: text('v.location'),
  block_size: constant(0),
  created_at: time('v.created_at'),
  updated_at: time('v.created_at'),
  // As `serialNumberOf` makes it.
  serial_number: plain(`right(replace(v.os_disk_id::text, '-', ''), 20)`),
  attachment_type: constant('os'),
  mode: constant('read-write'),
})

const dataDisk = object<VmDisk>({
  id: plain('d.id'),
  name: text('d.name'),
  type: text('d.type'),
  size: text('d.size'),
  location: text('d.location'),
  block_size: number('d.block_size'),
  created_at: time('d.created_at'),
  updated_at: time('d.updated_at'),
  serial_number: text('d.serial_number'),
  attachment_type: constant('data'),
  mode: text('a.mode'),
})
const dataDisks = each(
  dataDisk,
  'disk_attachments a JOIN disks d ON d.id = a.disk_id WHERE a.vm_id = v.id',
  'a.position',
)

const networkInterface = object<VmInterface>({
  id: plain('v.interface_id'),
  name: constant('nic0'),
  network: plain('v.network_id'),
  subnet: plain('v.subnet_id'),
  interface_type: constant('Ethernet'),
  mac_address: text('v.mac_address'),
  ips: listOf(
    object<VmAddresses>({
      private_ipv4: object<VmAddresses['private_ipv4']>({ address: plain('v.private_address') }),
      public_ipv4: object<VmAddresses['public_ipv4']>({
        address: plain('v.public_address'),
        id: plain('v.public_address_id'),
        type: text(`CASE WHEN v.public_address IS NOT NULL THEN 'dynamic' END`),
      }),
    }),
  ),
})

/**
 * What a record is made of beside the row `v` of vms: the time `t`, the price `p` of its type now, and its latest meter `m`,
 * which knows what the earlier ones cost. It stands in a FROM, after `v`.
 */
export const billing = `CROSS JOIN moment t
   LEFT JOIN LATERAL (SELECT usd, valid_from FROM prices WHERE product_name = v.type AND valid_from <= t.now
     ORDER BY valid_from DESC LIMIT 1) p ON true
   LEFT JOIN LATERAL (SELECT product_name, quantity, period, earlier_usd_ms FROM usage_intervals
     WHERE resource_id = v.id ORDER BY id DESC LIMIT 1) m ON true`

// As `ms_between`, which is called where this is part of the plan.
const msSince = (since: string, until: string) => `(date_part('epoch', ${until} - ${since}) * 1000)::bigint`

// Each part of a meter is counted at the price of its time; nothing where no price was set. Mostly the price of now has held
// since it opened: then no other is looked for. In USD-milliseconds per hour.
const spent = `
  coalesce(m.earlier_usd_ms + m.quantity * CASE
    WHEN m.product_name = v.type AND p.valid_from <= lower(m.period)
    THEN p.usd * greatest(${msSince('lower(m.period)', 'least(upper(m.period), t.now)')}, 0)
    ELSE metered_cost(m.product_name, 1, m.period * tstzrange(NULL, t.now)) END, 0)`

const cost = number(`trim_scale(round(${spent} / 3600000, 6))`)

// What an hour adds to it from now on; NULL where that is not simply said, as when another price is to come.
const rate = `CASE
  WHEN EXISTS (SELECT FROM prices WHERE product_name = v.type AND valid_from > t.now) THEN NULL
  WHEN m.period IS NULL OR upper(m.period) <= t.now THEN 0
  WHEN upper_inf(m.period) AND lower(m.period) <= t.now AND m.product_name = v.type THEN m.quantity * p.usd END`

// How a `known_hosts` file names it: a port that is not SSH's own belongs to the name.
const knownHost = `CASE WHEN v.ssh_destination = '' THEN host(coalesce(v.public_address, v.private_address))
  WHEN v.ssh_destination LIKE '%:%' THEN regexp_replace(v.ssh_destination, '^.*@(.*):([0-9]+)$', '[\\1]:\\2')
  ELSE split_part(v.ssh_destination, '@', 2) END`

const nvmeShares = familyNames.map((family) => `WHEN '${family}' THEN ${families[family].nvmeGb}`).join(' ')

/**
 * The record that clients see, as SQL of a row `v` of vms and its `billing`. A field is added to the contract's `Vm` and
 * here, where the compiler asks for it; every read, list and result of an operation then has it.
 */
export const vmRecord = jsonSql(recordWith(dataDisks))

function recordWith(...dataDisks: Json[]): Json {
  return object<Vm>({
    id: plain('v.id'),
    project_id: plain('v.project_id'),
    type: text('v.type'),
    state: text('v.state'),
    ssh_destination: text('v.ssh_destination'),
    created_at: time('v.created_at'),
    updated_at: time('v.updated_at'),
    name: text('v.name'),
    location: text('v.location'),
    commitment_period: constant(0),
    commitment_end: constant(''),
    disks: listOf(osDisk, ...dataDisks),
    network_interfaces: listOf(networkInterface),
    host_channel_adapters: constant([]),
    virtualization_features: constant({ nested_virtualization: false }),
    instance_template_id: constant(''),
    instance_group_id: constant(''),
    reservation_id: constant(''),
    image: text('v.image'),
    expires_at: time('v.expires_at'),
    on_expiry: text('v.on_expiry'),
    started_at: time('v.started_at'),
    usd_per_hour: json('p.usd'),
    cost_usd: cost,
    labels: json('v.labels'),
    description: text('v.description'),
    deletion_protection: boolean('v.is_protected'),
    ssh_public_keys: json('to_json(v.ssh_public_keys)'),
    ssh_host_keys: json(
      `CASE v.ssh_host_key WHEN '' THEN '[]' ELSE json_build_array(${knownHost} || ' ' || v.ssh_host_key) END`,
    ),
    startup_script_sha256: text('v.startup_script_sha256'),
    scratch_gb: number(`v.gpu_count * CASE v.family ${nvmeShares} END`),
  })
}

const byId = keyedStatement<{ record: string }, VmKey>(
  'vm_record',
  `SELECT v.project_id AS "projectId", v.id, ${vmRecord} AS record FROM vms v ${billing}
   WHERE v.id = ANY (:id::uuid[]) AND v.deleted_at IS NULL`,
)

const anyById = statement<{ record: string }, { id: string }>(
  'vm_any_record',
  `SELECT ${vmRecord} AS record FROM vms v ${billing} WHERE v.id = :id`,
)

const list = sortedStatement<SortedRow & { record: string }, Omit<VmFilter, 'labels'> & LabelParams>(
  'vm_record_list',
  { id: 'v.id', name: 'v.name', usdPerHour: 'p.usd' },
  ({
    given,
    key,
    isAfter,
    orderBy,
  }) => `SELECT v.id, ${key} AS sort_key, ${vmRecord} AS record FROM vms v ${billing}
   WHERE v.project_id = :projectId AND v.deleted_at IS NULL AND ${isAfter}
     AND ${ifGiven(':types::text[]', 'v.type = ANY (:types)')}
     AND ${ifGiven(':locations::text[]', 'v.location = ANY (:locations)')}
     AND ${ifGiven(':states::text[]', 'v.state = ANY (:states)')}
     AND ${fitsLabels('v.labels')} ${given}
   ORDER BY ${orderBy} LIMIT :limit`,
  { ids: 'v.id = ANY (:ids)', names: 'v.name = ANY (:names)' },
)

// Most VMs have no data disks, and a quarter of the work on a record is to prepare for them.
const withoutDisks = rememberedVms({ record: recordWith(), cost, spent, rate, billing })

export async function findVmView(
  db: Queryable,
  projectId: string,
  id: string,
): Promise<JsonText<Vm> | undefined> {
  const key = { projectId, id }
  const record = (await withoutDisks.find(db, key)) ?? (await byId.one(db, key))?.record
  return record === undefined ? undefined : new JsonText(record)
}

/** Returns that of any project's VM, also of a hidden one. */
export async function vmViewOf(tx: Tx, id: string): Promise<JsonText<Vm>> {
  return new JsonText((await anyById.one(tx, { id }))!.record)
}

export interface VmFilter extends SortedPage {
  projectId: string
  ids: string[] | null
  names: string[] | null
  types: string[] | null
  locations: string[] | null
  states: string[] | null
  labels: LabelSelector | null
}

export const listVmViews = (db: Queryable, filter: VmFilter) =>
  list.all(db, { ...filter, ...labelParams(filter.labels) })

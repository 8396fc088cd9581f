import { anyLocation, vmType } from '@slipway/sdk'
import type { Problem } from '../engine/diagnostics.ts'
import type { Change, ResourceRow } from '../engine/row.ts'
import { projectOf } from '../engine/session.ts'
import { isSame } from '../values/codec.ts'
import { isKnown, unknown, type Value, type Values } from '../values/types.ts'
import { sameImage, sameKey, sameSize } from './equivalents.ts'

interface RecordDisk {
  id: string
  name: string
  size: string
  mode: string
  attachment_type: string
}
const disksOf = (record: Values) => record.disks as unknown as RecordDisk[]
const dataDisks = (record: Values) =>
  disksOf(record).filter(({ attachment_type }) => attachment_type === 'data')

export const vm: ResourceRow = {
  name: 'vm',
  noun: 'VM',
  description: 'A virtual machine with GPUs.',
  routes: 'vm',
  example: `resource "slipway_vm" "example" {
  name           = "train-7"
  type           = "a100.1x"
  location       = "us-east1-a"
  image          = "ubuntu24.04-nvidia:latest"
  ssh_public_key = file("id_ed25519.pub")
  labels         = { team = "ml" }
}

output "ssh" {
  value = slipway_vm.example.ssh_destination
}

output "usd_per_hour" {
  value = slipway_vm.example.usd_per_hour
}`,
  notes: {
    type: 'A change within the family needs `allow_stopping`. A change to another family replaces the VM.',
    disks: 'The attached data disks, except those of `new_disks`. A change attaches and detaches disks.',
    public_address_id:
      'A later change assigns the new address in place. If another VM has the new address at that time, that VM gets a dynamic address. If the argument is removed, this VM gets a dynamic address. Open connections to the replaced address are closed. An address that was not assigned with this argument is not changed.',
    public_ip: '`dynamic`, the default, gives the VM a public address; `none` does not.',
    on_expiry: 'What happens when the TTL ends. The default is `stop`.',
    ttl_seconds:
      'Removing the argument does not remove the TTL: set 0 on an existing VM. A new VM does not accept 0.',
  },
  omitted: { cost_usd: 'The cost grows every second, so every plan would show a difference.' },
  // The host keys and the public address are not fixed, because a start can change the address.
  fixed: [
    'placed_location',
    'virtualization_features',
    'host_channel_adapters',
    'startup_script_sha256',
    'ssh_public_keys',
  ],
  kept: ['ttl_seconds'],
  derived: ['public_ip', 'os_disk_size', 'subnet_id'],
  sensitive: ['startup_script', 'shutdown_script'],
  defaults: { labels: {}, description: '', deletion_protection: false },
  defaultsUnless: 'instance_template_id',
  local: {
    allow_stopping: {
      type: 'bool',
      description:
        'Allows the provider to stop and start the VM to change its type within the same family. The data on the local scratch disk is lost when a VM stops.',
    },
    placed_location: {
      type: 'string',
      description: 'The location where the VM runs. It differs from `location` only if `location` is `any`.',
      isComputed: true,
    },
  },
  inPlace: ['type', 'disks', 'reservation_specification', 'public_address_id'],
  affected: { public_address_id: ['public_ip'] },
  equivalent: {
    location: (wanted) => wanted === anyLocation,
    image: sameImage,
    os_disk_size: sameSize,
    ssh_public_key: sameKey,
  },
  refreshed: ['location'],
  derive: (record, known, store) => {
    const network = networkOf(record)
    const address = network?.ips[0]?.public_ipv4
    const ownDisks = store.newDiskIds ?? newDiskIds(record, known)
    return {
      placed_location: record.location!,
      public_ip: address?.address ? 'dynamic' : 'none',
      // Another resource may have assigned the address, so it is tracked only if it is configured.
      public_address_id: isSet(known.public_address_id) ? reservedAddressOf(record) : null,
      subnet_id: network?.subnet ?? null,
      os_disk_size: disksOf(record).find(({ attachment_type }) => attachment_type === 'os')?.size ?? null,
      disks: dataDisks(record)
        .filter(({ id }) => !ownDisks.includes(id))
        .map(({ id, mode }) => diskEntry(id, mode, known)),
    }
  },
  remember: (record, request) => ({ newDiskIds: newDiskIds(record, request) }),
  checkConfig: (config) => [...requiredProblems(config), ...addressProblems(config)],
  checkChange,
  change,
}

interface Network {
  subnet: string
  ips: { public_ipv4: { id: string; address: string; type: string } }[]
}
const networkOf = (record: Values) => (record.network_interfaces as unknown as Network[])[0]

/** Returns the id of the VM's reserved address, or null if it has none. */
function reservedAddressOf(record: Values): string | null {
  const address = networkOf(record)?.ips[0]?.public_ipv4
  return address?.type === 'static' ? address.id : null
}

/** Returns the configuration entry of a disk, spelled as in the current configuration. */
function diskEntry(disk_id: string, mode: string, known: Values): Value {
  const entries = Array.isArray(known.disks) ? (known.disks as Values[]) : []
  const same = entries.find((entry) => entry.disk_id === disk_id && (entry.mode ?? 'read-write') === mode)
  return same ?? { disk_id, mode, attachment_type: null }
}

/** Returns the disks that were created with the VM: they are named after the VM and not listed in the request. */
function newDiskIds(record: Values, request: Values): string[] {
  const listed = Array.isArray(request.disks) ? (request.disks as Values[]).map(({ disk_id }) => disk_id) : []
  const prefix = `${String(request.name)}-disk-`
  return dataDisks(record)
    .filter(({ id, name }) => name.startsWith(prefix) && !listed.includes(id))
    .map(({ id }) => id)
}

const isSet = (value: Value | undefined) => (value ?? null) !== null

function addressProblems({ public_address_id, public_ip }: Values): Problem[] {
  const isKnownAndSet = (value: Value | undefined) => isSet(value) && value !== unknown
  if (!isKnownAndSet(public_address_id) || !isKnownAndSet(public_ip)) return []
  const detail = 'public_ip must not be set if public_address_id is set.'
  return [{ summary: 'Invalid VM', detail, attribute: 'public_ip' }]
}

function requiredProblems(config: Values): Problem[] {
  if ((config.instance_template_id ?? null) !== null) return []
  const isMissing = (name: string) => (config[name] ?? null) === null
  const missing = ['type', 'location', ...(isMissing('custom_image') ? ['image'] : [])].filter(isMissing)
  const problems = missing.map((attribute) => ({
    summary: 'Invalid VM',
    detail: `${attribute} is missing. It is required unless instance_template_id is set.`,
    attribute,
  }))
  if (!isMissing('ssh_public_key') || !isMissing('ssh_key_ids')) return problems
  const detail = 'No SSH key. Set ssh_public_key, ssh_key_ids, or an instance template that has one of them.'
  return [...problems, { summary: 'Invalid VM', detail, attribute: 'ssh_public_key' }]
}

function checkChange(prior: Values, planned: Values, config: Values) {
  const [from, to] = [prior.type, planned.type].map((name) =>
    typeof name === 'string' ? vmType(name) : undefined,
  )
  if (!from || !to || from.name === to.name) return {}
  if (from.family !== to.family) return { replace: ['type'] }
  if (prior.state === 'STATE_SHUTOFF' || config.allow_stopping === true || config.allow_stopping === unknown)
    return {}
  const scratch = from.nvmeGb > 0 ? ` The data on its local scratch disk (${from.nvmeGb} GB) is lost.` : ''
  const detail = `The change from ${from.name} to ${to.name} stops the VM and starts it again.${scratch} Set allow_stopping = true to allow this.`
  return { problems: [{ summary: 'The VM must stop for this change', detail, attribute: 'type' }] }
}

async function change(all: Change): Promise<void> {
  const { prior, planned, changed, call, private: store } = all
  if (changed.has('public_address_id')) await changeAddress(all)
  if (changed.has('disks') && isKnown(planned.disks ?? null)) await changeDisks(prior, planned, call)
  if (changed.has('reservation_specification')) await changeReservation(planned, call)
  if (changed.has('type')) {
    if (prior.state === 'STATE_RUNNING') {
      await call('vmUpdate', { body: { action: 'STOP' } })
      store.needsStart = true
    }
    await call('vmUpdate', { body: { type: planned.type } })
  }
  if (!store.needsStart) return
  await call('vmUpdate', { body: { action: 'START' } })
  delete store.needsStart
}

/**
 * Assigns the wanted address, or unassigns the previous one from the VM. The same apply may have assigned the
 * previous address to another VM, which must keep it.
 */
async function changeAddress({ session, prior, planned, call }: Change): Promise<void> {
  const vm_id = String(prior.id)
  const read = { params: { project_id: projectOf(session, prior.project_id), vm_id } }
  const current = async () => reservedAddressOf((await session.call('vmGet', read)) as Values)
  const before = await current()
  const wanted = planned.public_address_id ?? null
  if (wanted !== null) {
    const params = { address_id: String(wanted) }
    if (before !== wanted) await call('addressAssign', { params, body: { vm_id } })
    return
  }
  if (before === null || before !== prior.public_address_id) return
  try {
    await call('addressUnassign', { params: { address_id: String(before) }, query: { vm_id } })
  } catch (error) {
    if ((await current()) === before) throw error
  }
}

async function changeDisks(prior: Values, planned: Values, call: Change['call']): Promise<void> {
  const [before, after] = [prior.disks, planned.disks].map((disks) => (disks ?? []) as Values[])
  const isIn = (disks: Values[], disk: Values) =>
    disks.some(
      (each) => each.disk_id === disk.disk_id && isSame(each.mode ?? 'read-write', disk.mode ?? 'read-write'),
    )
  const detach = before!.filter((disk) => !isIn(after!, disk)).map(({ disk_id }) => disk_id)
  const attach = after!
    .filter((disk) => !isIn(before!, disk))
    .map(({ disk_id, mode }) => ({ disk_id, attachment_type: 'data', mode: mode ?? 'read-write' }))
  if (detach.length > 0) await call('vmDetachDisks', { body: { detach_disks: detach } })
  if (attach.length > 0) await call('vmAttachDisks', { body: { attach_disks: attach } })
}

/** The strategy `lowest_cost` applies only to creations, so a change to it needs no call. */
async function changeReservation(
  { reservation_specification: wanted }: Values,
  call: Change['call'],
): Promise<void> {
  const { id, selection_strategy } = (wanted ?? {}) as Values
  if (typeof id === 'string') await call('vmUpdate', { body: { action: 'RESERVE', reservation_id: id } })
  else if (selection_strategy === 'on_demand') await call('vmUpdate', { body: { action: 'UNRESERVE' } })
}

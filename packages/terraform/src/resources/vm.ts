import { anyLocation, vmType } from '@slipway/sdk'
import type { Problem } from '../engine/diagnostics.ts'
import type { Change, ResourceRow } from '../engine/row.ts'
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
    type: 'Another type of the same family needs `allow_stopping`; another family replaces the VM.',
    disks: 'The attached data disks, besides those of `new_disks`. A change attaches and detaches disks.',
    ttl_seconds: 'The TTL of a VM can be changed, but not removed.',
  },
  omitted: { cost_usd: 'The cost grows every second, so every plan would show a difference.' },
  // The public address and the host keys belong to the life of the VM, but a start can bring a new address.
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
        'Allows the provider to stop and start the VM for a change of its type within the same family. The data on the local scratch disk is lost when a VM stops.',
    },
    placed_location: {
      type: 'string',
      description: 'The location where the VM runs. It differs from `location` only if that is `any`.',
      isComputed: true,
    },
  },
  inPlace: ['type', 'disks', 'reservation_specification'],
  equivalent: {
    location: (wanted) => wanted === anyLocation,
    image: sameImage,
    os_disk_size: sameSize,
    ssh_public_key: sameKey,
  },
  refreshed: ['location'],
  derive: (record, known, store) => {
    const [network] = record.network_interfaces as unknown as { subnet: string; ips: Values[] }[]
    const address = network?.ips[0]?.public_ipv4 as Values | undefined
    const ownDisks = store.newDiskIds ?? newDiskIds(record, known)
    return {
      placed_location: record.location!,
      public_ip: address?.address ? 'dynamic' : 'none',
      subnet_id: network?.subnet ?? null,
      os_disk_size: disksOf(record).find(({ attachment_type }) => attachment_type === 'os')?.size ?? null,
      disks: dataDisks(record)
        .filter(({ id }) => !ownDisks.includes(id))
        .map(({ id, mode }) => diskEntry(id, mode, known)),
    }
  },
  remember: (record, request) => ({ newDiskIds: newDiskIds(record, request) }),
  checkConfig,
  checkChange,
  change,
}

/** The entry of the configuration for a disk, written as the configuration has it. */
function diskEntry(disk_id: string, mode: string, known: Values): Value {
  const entries = Array.isArray(known.disks) ? (known.disks as Values[]) : []
  const same = entries.find((entry) => entry.disk_id === disk_id && (entry.mode ?? 'read-write') === mode)
  return same ?? { disk_id, mode, attachment_type: null }
}

/** Disks that were created with the VM are named after it and numbered, and the request does not list them. */
function newDiskIds(record: Values, request: Values): string[] {
  const listed = Array.isArray(request.disks) ? (request.disks as Values[]).map(({ disk_id }) => disk_id) : []
  const prefix = `${String(request.name)}-disk-`
  return dataDisks(record)
    .filter(({ id, name }) => name.startsWith(prefix) && !listed.includes(id))
    .map(({ id }) => id)
}

function checkConfig(config: Values): Problem[] {
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

async function change({ prior, planned, changed, call, private: store }: Change): Promise<void> {
  if (changed.has('disks') && isKnown(planned.disks ?? null)) await changeDisks(prior, planned, call)
  if (changed.has('reservation_specification')) await changeReservation(planned, call)
  if (changed.has('type')) {
    if (prior.state === 'STATE_RUNNING') {
      await call('vmUpdate', { action: 'STOP' })
      store.needsStart = true
    }
    await call('vmUpdate', { type: planned.type })
  }
  if (!store.needsStart) return
  await call('vmUpdate', { action: 'START' })
  delete store.needsStart
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
  if (detach.length > 0) await call('vmDetachDisks', { detach_disks: detach })
  if (attach.length > 0) await call('vmAttachDisks', { attach_disks: attach })
}

/** A selection strategy other than `on_demand` is for creations only, so a change to it needs no call. */
async function changeReservation(
  { reservation_specification: wanted }: Values,
  call: Change['call'],
): Promise<void> {
  const { id, selection_strategy } = (wanted ?? {}) as Values
  if (typeof id === 'string') await call('vmUpdate', { action: 'RESERVE', reservation_id: id })
  else if (selection_strategy === 'on_demand') await call('vmUpdate', { action: 'UNRESERVE' })
}

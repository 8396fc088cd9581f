import { type Vm, type VmType, vmStateTable, vmType } from '@slipway/sdk'
import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { usePriceOf } from '../../api/prices.ts'
import { read } from '../../api/read.ts'
import { useQuery } from '../../api/use-query.ts'
import { TemplateLink } from '../../features/capacity/template-link.tsx'
import { publicAddressOf } from '../../lib/addresses.ts'
import { count, money, usd } from '../../lib/format.ts'
import { memoryText } from '../../lib/units/sizes.ts'
import { Copyable } from '../../ui/copy.tsx'
import { Facts } from '../../ui/page.tsx'
import { Age, Timestamp, Until } from '../../ui/time.tsx'

/** The hardware, price, cost, uptime and expiry of a VM. */
export function VmFacts({ vm }: { vm: Vm }) {
  const type = vmType(vm.type)
  return (
    <Facts
      items={[
        ['Type', vm.type],
        ['GPUs', type ? `${type.gpuCount} × ${type.gpuModel}` : '–'],
        ['Machine', type ? machineText(type) : '–'],
        ['Location', vm.location],
        ['Image', vm.image],
        ['Public address', publicAddressOf(vm) ? <Copyable key="ip" text={publicAddressOf(vm)} /> : 'none'],
        ...membershipOf(vm),
        ['ID', <Copyable key="id" text={vm.id} />],
        ['Price', <VmPrice key="price" vm={vm} />],
        ['Cost so far', <VmCost key="cost" vm={vm} />],
        ['Uptime', <Uptime key="up" vm={vm} />],
        ['Expires', <VmExpiry key="ends" vm={vm} />],
        ['Created', <Timestamp key="created" iso={vm.created_at} />],
        ['Updated', <Timestamp key="changed" iso={vm.updated_at} />],
      ]}
    />
  )
}

/** The group, template and reservation of the VM, if it has any. */
function membershipOf(vm: Vm): [string, ReactNode][] {
  const { project_id: projectId, instance_group_id, instance_template_id, reservation_id } = vm
  return [
    ...(instance_group_id
      ? [['Group', <GroupLink key="group" projectId={projectId} groupId={instance_group_id} />] as Fact]
      : []),
    ...(instance_template_id
      ? [['Template', <TemplateLink key="template" id={instance_template_id} />] as Fact]
      : []),
    ...(reservation_id ? [['Reservation', <ReservedUntil key="reservation" vm={vm} />] as Fact] : []),
  ]
}

type Fact = [string, ReactNode]

function GroupLink({ projectId, groupId }: { projectId: string; groupId: string }) {
  const group = useQuery(
    read('instanceGroupGet', { params: { project_id: projectId, instance_group_id: groupId } }),
  )
  return (
    <Link to="/projects/$projectId/groups/$groupId" params={{ projectId, groupId }} className="link">
      {group.data?.name ?? '…'}
    </Link>
  )
}

function ReservedUntil({ vm }: { vm: Vm }) {
  return (
    <span>
      <Link
        to="/projects/$projectId/settings/reservations"
        params={{ projectId: vm.project_id }}
        className="link"
      >
        reserved GPUs
      </Link>{' '}
      until <Timestamp iso={vm.commitment_end} />
    </span>
  )
}

/** A crashed VM keeps the time of its last start, but does not run. */
function Uptime({ vm: { state, started_at } }: { vm: Vm }) {
  if (state === 'STATE_CRASHED') return '–'
  if (started_at) return <Age iso={started_at} />
  return state === 'STATE_CREATING' || state === 'STATE_STARTING' ? 'starting' : 'stopped'
}

function machineText(type: VmType): string {
  const scratch = type.nvmeGb > 0 ? `, ${count(type.nvmeGb)}\u00a0GB scratch` : ''
  return `${type.cpuCores} cores, ${memoryText(type)}${scratch}`
}

function VmPrice({ vm }: { vm: Vm }) {
  const usdPerHour = usePriceOf(vm.project_id)(vm.type) ?? vm.usd_per_hour
  if (usdPerHour === null) return 'no price set'
  return (
    <span className="figures">
      {usd(usdPerHour)}/h
      {!vmStateTable[vm.state].isBilled && (
        <span className="text-ink-muted"> when running (not billed now)</span>
      )}
    </span>
  )
}

function VmCost({ vm }: { vm: Vm }) {
  const dataDisks = vm.disks.filter(({ attachment_type }) => attachment_type === 'data')
  return (
    <span className="figures">
      {money(vm.cost_usd)}
      {dataDisks.length > 0 && <span className="text-ink-muted"> excluding data disks</span>}
    </span>
  )
}

function VmExpiry({ vm }: { vm: Vm }) {
  if (!vm.expires_at) return 'never'
  return (
    <span>
      {vm.on_expiry === 'delete' ? 'will be deleted' : 'will be stopped'} <Until iso={vm.expires_at} />
    </span>
  )
}

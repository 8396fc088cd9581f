import { type Vm, type VmType, vmStateTable, vmType } from '@slipway/sdk'
import { usePriceOf } from '../../api/prices.ts'
import { publicAddressOf } from '../../lib/addresses.ts'
import { count, money, usd } from '../../lib/format.ts'
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
        ['ID', <Copyable key="id" text={vm.id} />],
        ['Price', <VmPrice key="price" vm={vm} />],
        ['Cost so far', <VmCost key="cost" vm={vm} />],
        [
          'Uptime',
          vm.started_at ? <Age key="up" iso={vm.started_at} /> : isStarting(vm) ? 'starting' : 'stopped',
        ],
        ['Expires', <VmEnd key="ends" vm={vm} />],
        ['Created', <Timestamp key="created" iso={vm.created_at} />],
        ['Updated', <Timestamp key="changed" iso={vm.updated_at} />],
      ]}
    />
  )
}

const isStarting = ({ state }: Vm) => state === 'STATE_CREATING' || state === 'STATE_STARTING'

function machineText({ cpuCores, memoryGb, nvmeGb }: VmType): string {
  const scratch = nvmeGb > 0 ? `, ${count(nvmeGb)} GB scratch` : ''
  return `${cpuCores} cores, ${count(memoryGb)} GB memory${scratch}`
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
      {dataDisks.length > 0 && <span className="text-ink-muted"> without data disks</span>}
    </span>
  )
}

function VmEnd({ vm }: { vm: Vm }) {
  if (!vm.expires_at) return 'never'
  return (
    <span>
      {vm.on_expiry === 'delete' ? 'deleted' : 'stopped'} <Until iso={vm.expires_at} />
    </span>
  )
}

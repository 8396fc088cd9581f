import type { Vm } from '@slipway/sdk'
import { Link } from '@tanstack/react-router'
import { useMemo, useState } from 'react'
import { useProjectId, useWhyNot } from '../../api/me.ts'
import { type UsdPerHour, useUsdPerHour } from '../../api/prices.ts'
import { readAll } from '../../api/read.ts'
import { useQuery } from '../../api/use-query.ts'
import { useStuck } from '../../features/alerts.tsx'
import { ProtectedMark } from '../../features/annotations.tsx'
import { CreateVmButton } from '../../features/create-vm-button.tsx'
import { GpuUse, useHasGpuUse } from '../../features/gpu-use.tsx'
import { HealthBadge } from '../../features/health/badge.tsx'
import { VmTabs } from '../../features/page-tabs.tsx'
import { publicAddressOf } from '../../lib/addresses.ts'
import { amount, count, plural, usd } from '../../lib/format.ts'
import { curlCommand } from '../../lib/shell.ts'
import { stateWord } from '../../lib/states.ts'
import { useSearchState } from '../../lib/use-search-state.ts'
import { actionColumn } from '../../ui/columns/action-column.tsx'
import { ageColumn } from '../../ui/columns/time-column.tsx'
import { CopyButton } from '../../ui/copy.tsx'
import { Labels } from '../../ui/labels.tsx'
import { Loaded } from '../../ui/loaded.tsx'
import { NoBreak } from '../../ui/no-break.tsx'
import { Empty, Page } from '../../ui/page.tsx'
import { StateBadge } from '../../ui/state.tsx'
import { type Column, noValue, Table } from '../../ui/table.tsx'
import { BulkActions, RowMenu } from './bulk-actions.tsx'
import { BulkDialog } from './bulk-dialog.tsx'
import type { BulkName } from './bulk-table.ts'
import { FailedCreations } from './failed-creations.tsx'
import { Filters, matches } from './filters.tsx'

export function Vms() {
  const projectId = useProjectId()
  const whyNot = useWhyNot('member')
  const vms = useQuery(readAll('vmList', { project_id: projectId }))
  const [search, setSearch] = useSearchState()
  const [selected, setSelected] = useState<Set<string>>(new Set())
  const [asked, setAsked] = useState<{ what: BulkName; vms: Vm[] } | null>(null)
  const rows = useMemo(() => (vms.data ?? []).filter((vm) => matches(vm, search)), [vms.data, search])
  const hasLabels = (vms.data ?? []).some((vm) => Object.keys(vm.labels).length > 0)
  const stuck = useStuck()
  const usdPerHour = useUsdPerHour(projectId)
  const hasGpuUse = useHasGpuUse(rows)
  const columns = useMemo(
    () => [
      ...columnsFor({ projectId, stuck, hasLabels, hasGpuUse, usdPerHour }),
      actionColumn('48px', (vm: Vm) => (
        <RowMenu vm={vm} whyNot={whyNot} onAsk={(what) => setAsked({ what, vms: [vm] })} />
      )),
    ],
    [projectId, stuck, hasLabels, hasGpuUse, usdPerHour, whyNot],
  )
  const chosen = rows.filter((vm) => selected.has(vm.id))
  const create = <CreateVmButton />
  return (
    <Page title="VMs" actions={vms.data?.length !== 0 && create} isWide>
      <VmTabs />
      <FailedCreations projectId={projectId} vms={vms.data ?? []} />
      <Loaded query={vms}>
        {(data) =>
          data.length === 0 ? (
            <Empty
              title="No VMs yet"
              action={create}
              cli="slipway vm create train-7 --type a100.1x --location us-east1-a"
              curl={curlCommand('POST', `/v0.1/projects/${projectId}/vms`, {
                name: 'train-7',
                type: 'a100.1x',
                location: 'us-east1-a',
                image: 'ubuntu24.04-nvidia:latest',
                ssh_public_key: 'ssh-ed25519 …',
              })}
            >
              A VM has one to ten GPUs of the same model. You can connect by SSH moments after you create it.
            </Empty>
          ) : (
            <>
              <div className="filter-bar">
                <Filters vms={data} search={search} setSearch={setSearch} />
                <span className="figures text-ink-muted max-xl:w-full xl:ml-auto">
                  {totalText(rows, data.length, usdPerHour)}
                </span>
              </div>
              <Table
                label="VMs"
                rows={rows}
                columns={columns}
                sort={search.sort ?? ''}
                onSort={(sort) => setSearch({ sort })}
                rowKey={(vm) => vm.id}
                rowName={(vm) => vm.name}
                selected={selected}
                onSelect={setSelected}
              />
              {chosen.length > 0 && (
                <BulkActions
                  vms={chosen}
                  usdPerHour={usdPerHour}
                  whyNot={whyNot}
                  onAsk={(what) => setAsked({ what, vms: chosen })}
                  onClear={() => setSelected(new Set())}
                />
              )}
              {rows.length === 0 && (
                <p className="text-ink-muted">
                  No VMs match the filters.{' '}
                  <button
                    type="button"
                    className="link"
                    onClick={() => setSearch({ q: '', state: '', type: '', location: '', labels: '' })}
                  >
                    Clear filters
                  </button>
                </p>
              )}
            </>
          )
        }
      </Loaded>
      {asked && (
        <BulkDialog
          {...asked}
          projectId={projectId}
          onClose={() => setAsked(null)}
          onDone={(vms) =>
            setSelected(new Set([...selected].filter((id) => !vms.some((vm) => vm.id === id))))
          }
        />
      )}
    </Page>
  )
}

/** Returns the total of the visible rows: "2 of 3 VMs: 1 running for 0.90 USD/h". */
function totalText(rows: Vm[], all: number, usdPerHour: UsdPerHour): string {
  const running = rows.filter((vm) => vm.state === 'STATE_RUNNING').length
  const total = rows.reduce((sum, vm) => sum + (usdPerHour(vm) ?? 0), 0)
  const shown = rows.length === all ? plural(all, 'VM') : `${count(rows.length)} of ${plural(all, 'VM')}`
  return `${shown}: ${count(running)} running for ${usd(total)}/h`
}

interface ColumnOptions {
  projectId: string
  stuck: ReadonlyMap<string, string>
  hasLabels: boolean
  /** Undefined if no VM has GPU usage. */
  hasGpuUse: ((vm: Vm) => boolean) | undefined
  usdPerHour: UsdPerHour
}

const columnsFor = ({ projectId, stuck, hasLabels, hasGpuUse, usdPerHour }: ColumnOptions): Column<Vm>[] => [
  {
    key: 'name',
    title: 'Name',
    width: 'minmax(116px, 2fr)',
    sortBy: (vm) => vm.name,
    cell: (vm) => (
      <>
        <Link
          to="/projects/$projectId/vms/$vmId"
          params={{ projectId, vmId: vm.id }}
          className="font-medium hover:text-accent-text hover:underline"
        >
          {vm.name}
        </Link>
        <ProtectedMark resource={vm} />
      </>
    ),
  },
  {
    key: 'type',
    title: 'Type',
    width: 'minmax(116px, 0.8fr)',
    sortBy: (vm) => vm.type,
    cell: (vm) => <NoBreak>{vm.type}</NoBreak>,
  },
  {
    key: 'state',
    title: 'State',
    width: 'minmax(117px, 0.8fr)',
    sortBy: (vm) => stateWord(vm.state),
    cell: (vm) => (
      <span className="inline-flex flex-wrap items-center gap-x-3">
        <StateBadge state={stuck.has(vm.id) ? 'stuck' : vm.state} since={vm.updated_at} />
        <HealthBadge vm={vm} />
      </span>
    ),
  },
  ...(hasGpuUse ? [gpuColumn(hasGpuUse)] : []),
  {
    key: 'address',
    title: 'Address',
    width: 'minmax(156px, 0.8fr)',
    isFoldable: true,
    cell: (vm) => {
      const address = publicAddressOf(vm)
      if (!address) return noValue
      return (
        <span className="inline-flex items-center gap-1 align-middle whitespace-nowrap">
          <span className="mono">{address}</span>
          <CopyButton text={address} label={`Copy ${address}`} />
        </span>
      )
    },
  },
  {
    key: 'price',
    title: 'USD/h',
    width: '82px',
    align: 'right',
    isFoldable: true,
    sortBy: (vm) => usdPerHour(vm) ?? undefined,
    cell: (vm) => {
      const price = usdPerHour(vm)
      return typeof price === 'number' ? amount(price) : noValue
    },
  },
  { ...ageColumn, width: '74px' },
  ...(hasLabels ? [labelsColumn] : []),
  // The last column folds first.
  {
    key: 'location',
    title: 'Location',
    width: 'minmax(96px, 0.8fr)',
    isFoldable: true,
    sortBy: (vm) => vm.location,
    cell: (vm) => <NoBreak>{vm.location}</NoBreak>,
  },
]

const gpuColumn = (hasGpuUse: (vm: Vm) => boolean): Column<Vm> => ({
  key: 'gpu',
  title: 'GPU usage',
  width: '100px',
  isFoldable: true,
  cell: (vm) => (hasGpuUse(vm) ? <GpuUse vm={vm} /> : noValue),
})

const labelsColumn: Column<Vm> = {
  key: 'labels',
  title: 'Labels',
  width: 'minmax(102px, 1.2fr)',
  isFoldable: true,
  cell: (vm) => Object.keys(vm.labels).length > 0 && <PickableLabels labels={vm.labels} />,
}

function PickableLabels({ labels }: Pick<Vm, 'labels'>) {
  const [, setSearch] = useSearchState()
  return <Labels labels={labels} onPick={(label) => setSearch({ labels: label })} />
}

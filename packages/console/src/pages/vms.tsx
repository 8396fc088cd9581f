import { type Vm, type VmAction, vmActions, vmStates } from '@slipway/sdk'
import { Link } from '@tanstack/react-router'
import { Plus, Square, Trash2 } from 'lucide-react'
import { useMemo, useState } from 'react'
import { touch } from '../api/actions.ts'
import { client } from '../api/client.ts'
import { read, readAll } from '../api/read.ts'
import { useQuery } from '../api/use-query.ts'
import { useProjectId, useWhyNot } from '../app/me.ts'
import { count, plural, usd } from '../lib/format.ts'
import { useSearchState } from '../lib/use-search.ts'
import { Button, ButtonLink } from '../ui/button.tsx'
import { curlLine } from '../ui/command-lines.tsx'
import { CopyButton } from '../ui/copy.tsx'
import { Confirm } from '../ui/dialog.tsx'
import { ErrorState } from '../ui/error.tsx'
import { Select } from '../ui/field.tsx'
import { Empty, Page, Skeleton } from '../ui/page.tsx'
import { StateBadge, stateWord } from '../ui/state.tsx'
import { type Column, Table } from '../ui/table.tsx'
import { Age } from '../ui/time.tsx'
import { showResult } from '../ui/toast.tsx'

export function Vms() {
  const projectId = useProjectId()
  const whyNot = useWhyNot('member')
  const vms = useQuery(readAll('vmList', { project_id: projectId }))
  const costs = useQuery(read('projectCosts', { params: { project_id: projectId } }))
  const [search, setSearch] = useSearchState()
  const [selected, setSelected] = useState<Set<string>>(new Set())
  const rows = useMemo(() => (vms.data ?? []).filter((vm) => matches(vm, search)), [vms.data, search])
  const chosen = rows.filter((vm) => selected.has(vm.id))
  const running = (vms.data ?? []).filter((vm) => vm.state === 'STATE_RUNNING').length
  const create = (
    <ButtonLink
      kind="primary"
      icon={<Plus size={16} />}
      hotkey="c"
      to="/projects/$projectId/vms/new"
      params={{ projectId }}
    >
      Create VM
    </ButtonLink>
  )
  return (
    <Page title="VMs" actions={create} isWide>
      {vms.error && !vms.data ? (
        <ErrorState error={vms.error} onRetry={() => vms.refetch()} />
      ) : !vms.data ? (
        <Skeleton />
      ) : vms.data.length === 0 ? (
        <Empty
          title="No VM yet"
          action={create}
          cli="slipway vm create train-7 --type a100.1x --location us-east1-a"
          curl={curlLine('POST', `/v0.1/projects/${projectId}/vms`, {
            name: 'train-7',
            type: 'a100.1x',
            location: 'us-east1-a',
            image: 'ubuntu24.04-nvidia:latest',
            ssh_public_key: 'ssh-ed25519 …',
          })}
        >
          A VM has one to ten GPUs of one kind and is reachable by SSH a moment after it was made.
        </Empty>
      ) : (
        <>
          <div className="flex min-h-8 flex-wrap items-center gap-2">
            {chosen.length > 0 ? (
              <BulkActions
                vms={chosen}
                projectId={projectId}
                whyNot={whyNot}
                onDone={() => setSelected(new Set())}
              />
            ) : (
              <Filters vms={vms.data} search={search} setSearch={setSearch} />
            )}
            <span className="figures ml-auto text-ink-muted">
              {count(running)} running
              {costs.data && ` · ${usd(costs.data.usd_per_hour)}/h`}
              {rows.length !== vms.data.length && ` · ${rows.length} of ${vms.data.length} shown`}
            </span>
          </div>
          <Table
            label="VMs"
            rows={rows}
            columns={columnsFor(projectId)}
            rowKey={(vm) => vm.id}
            rowName={(vm) => vm.name}
            selected={selected}
            onSelect={setSelected}
          />
          {rows.length === 0 && (
            <p className="text-ink-muted">
              No VM matches the filter.{' '}
              <button
                type="button"
                className="link"
                onClick={() => setSearch({ q: '', state: '', type: '', location: '' })}
              >
                Clear it
              </button>
            </p>
          )}
        </>
      )}
    </Page>
  )
}

function matches(vm: Vm, { q = '', state = '', type = '', location = '' }: Record<string, string>): boolean {
  if (state && vm.state !== state) return false
  if (type && vm.type !== type) return false
  if (location && vm.location !== location) return false
  const text = q.toLowerCase()
  return !text || `${vm.name} ${vm.id} ${vm.ssh_destination}`.toLowerCase().includes(text)
}

function Filters({
  vms,
  search,
  setSearch,
}: {
  vms: Vm[]
  search: Record<string, string>
  setSearch: (changes: Record<string, string>) => void
}) {
  const choices = (name: string, values: string[], word: (value: string) => string = String) => [
    { value: '', label: `Any ${name}` },
    ...[...new Set(values)].sort().map((value) => ({ value, label: word(value) })),
  ]
  const present = new Set(vms.map((vm) => vm.state))
  return (
    <>
      <input
        aria-label="Filter by name, address or id"
        placeholder="Filter by name"
        value={search.q ?? ''}
        onChange={(event) => setSearch({ q: event.target.value })}
        className="h-7 w-44 rounded-md border border-line-strong bg-surface px-2 text-sm"
      />
      <Select
        isSmall
        label="State"
        value={search.state ?? ''}
        onChange={(state) => setSearch({ state })}
        choices={choices(
          'state',
          vmStates.filter((state) => present.has(state) || search.state === state),
          stateWord,
        )}
      />
      <Select
        isSmall
        label="Type"
        value={search.type ?? ''}
        onChange={(type) => setSearch({ type })}
        choices={choices('type', [...vms.map((vm) => vm.type), ...(search.type ? [search.type] : [])])}
      />
      <Select
        isSmall
        label="Location"
        value={search.location ?? ''}
        onChange={(location) => setSearch({ location })}
        choices={choices('location', [
          ...vms.map((vm) => vm.location),
          ...(search.location ? [search.location] : []),
        ])}
      />
    </>
  )
}

const addressOf = (vm: Vm) => vm.network_interfaces[0]?.ips[0]?.public_ipv4.address ?? ''

const columnsFor = (projectId: string): Column<Vm>[] => [
  {
    key: 'name',
    title: 'Name',
    width: 'minmax(140px, 2fr)',
    cell: (vm) => (
      <Link
        to="/projects/$projectId/vms/$vmId"
        params={{ projectId, vmId: vm.id }}
        className="font-medium hover:text-accent-text hover:underline"
      >
        {vm.name}
      </Link>
    ),
  },
  { key: 'type', title: 'Type', width: 'minmax(110px, 1fr)', cell: (vm) => vm.type },
  {
    key: 'state',
    title: 'State',
    width: 'minmax(150px, 1fr)',
    cell: (vm) => <StateBadge state={vm.state} since={vm.updated_at} />,
  },
  { key: 'location', title: 'Location', width: 'minmax(110px, 1fr)', cell: (vm) => vm.location },
  {
    key: 'address',
    title: 'Address',
    width: 'minmax(170px, 1fr)',
    cell: (vm) => {
      const address = addressOf(vm)
      if (!address) return <span className="text-ink-muted">–</span>
      return (
        <span className="inline-flex items-center gap-1 align-middle">
          <span className="mono">{address}</span>
          <CopyButton
            text={vm.ssh_destination ? `ssh ${vm.ssh_destination}` : address}
            label="Copy the SSH line"
          />
        </span>
      )
    },
  },
  { key: 'age', title: 'Age', width: '90px', align: 'right', cell: (vm) => <Age iso={vm.created_at} /> },
]

function BulkActions({
  vms,
  projectId,
  whyNot,
  onDone,
}: {
  vms: Vm[]
  projectId: string
  whyNot: string | undefined
  onDone: () => void
}) {
  const [wanted, setWanted] = useState<'stop' | 'delete' | ''>('')
  const [isBusy, setBusy] = useState(false)
  const stoppable = vms.filter((vm) => vmActions['STOP' satisfies VmAction].from.includes(vm.state))
  const targets = wanted === 'stop' ? stoppable : vms
  const verb = wanted === 'stop' ? 'Stop' : 'Delete'
  const run = async () => {
    setBusy(true)
    const results = await Promise.allSettled(
      targets.map(async (vm) => {
        const target = { project_id: projectId, vm_id: vm.id }
        const { operation } =
          wanted === 'stop'
            ? await client.vmUpdate(target, { action: 'STOP' })
            : await client.vmDelete(target)
        return () => client.wait({ project_id: projectId }, operation)
      }),
    )
    setBusy(false)
    setWanted('')
    onDone()
    await touch(['vmList'])
    const refused = results.filter((result) => result.status === 'rejected')
    if (refused[0])
      showResult({ title: `${plural(refused.length, 'VM')} refused`, error: refused[0].reason as Error })
    const ends = await Promise.allSettled(
      results.flatMap((result) => (result.status === 'fulfilled' ? [result.value()] : [])),
    )
    const ended = ends.filter((end) => end.status === 'fulfilled').length
    const failed = ends.find((end) => end.status === 'rejected')
    if (ended > 0)
      showResult({ title: `${wanted === 'stop' ? 'Stopped' : 'Deleted'} ${plural(ended, 'VM')}` })
    if (failed)
      showResult({
        title: `${verb} failed for ${plural(ends.length - ended, 'VM')}`,
        error: failed.reason as Error,
      })
  }
  return (
    <>
      <span className="figures font-medium">{plural(vms.length, 'VM')} selected</span>
      <Button
        size="small"
        icon={<Square size={14} />}
        reason={
          whyNot ?? (stoppable.length === 0 ? 'None of these is in a state that can be stopped' : undefined)
        }
        onClick={() => setWanted('stop')}
      >
        Stop
      </Button>
      <Button
        size="small"
        kind="danger"
        icon={<Trash2 size={14} />}
        reason={whyNot}
        onClick={() => setWanted('delete')}
      >
        Delete
      </Button>
      <Button size="small" kind="quiet" onClick={onDone}>
        Clear
      </Button>
      <Confirm
        isOpen={wanted !== ''}
        onClose={() => setWanted('')}
        title={`${verb} ${plural(targets.length, 'VM')}`}
        action={`${verb} ${plural(targets.length, 'VM')}`}
        isBusy={isBusy}
        error={null}
        onConfirm={run}
      >
        <p>
          {wanted === 'stop'
            ? 'GPUs are given back and billing of the VMs ends. Disks and addresses stay.'
            : 'The OS disks and addresses go. Data disks stay.'}
        </p>
        <p className="mono mt-2 max-h-40 overflow-y-auto text-ink">
          {targets.map((vm) => vm.name).join(', ')}
        </p>
      </Confirm>
    </>
  )
}

import { hoursPerMonth } from '@slipway/contract/vm-types'
import type { Disk } from '@slipway/sdk'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { useProjectId, useWhyNot } from '../../api/me.ts'
import { usePrices } from '../../api/prices.ts'
import { readAll } from '../../api/read.ts'
import { useEndpointNames } from '../../api/resource-names.ts'
import { useQuery } from '../../api/use-query.ts'
import { AnnotationDialog, ProtectedMark } from '../../features/annotations.tsx'
import { AttachThisDisk } from '../../features/attach-disk.tsx'
import { CreateDisk } from '../../features/create-disk.tsx'
import { fitsSelector, LabelFilter } from '../../features/label-filter.tsx'
import { StorageTabs } from '../../features/page-tabs.tsx'
import { diskUsdPerHour, gibOf, monthlyText } from '../../lib/disks.ts'
import { amount, plural, sizeText, usd } from '../../lib/format.ts'
import { curlCommand } from '../../lib/shell.ts'
import { useSearchState } from '../../lib/use-search-state.ts'
import { Button } from '../../ui/button.tsx'
import { actionColumn } from '../../ui/columns/action-column.tsx'
import { FilterInput, Select } from '../../ui/field.tsx'
import { Icon } from '../../ui/icon.tsx'
import { Labels } from '../../ui/labels.tsx'
import { Loaded } from '../../ui/loaded.tsx'
import { NoBreak } from '../../ui/no-break.tsx'
import { Empty, Page } from '../../ui/page.tsx'
import { StateBadge } from '../../ui/state.tsx'
import { type Column, noValue, Table } from '../../ui/table.tsx'
import { DeleteDialog, DetachFromVm, GrowDialog } from './change-dialogs.tsx'
import { RowMenu } from './row-menu.tsx'

type What = 'create' | 'attach' | 'detach' | 'edit' | 'grow' | 'delete'

const isAttached = ({ attached_to }: Disk) => attached_to.length > 0

export function Disks() {
  const projectId = useProjectId()
  const disks = useQuery(readAll('diskList', { project_id: projectId }))
  const whyNot = useWhyNot('member')
  const [open, setOpen] = useState<{ what: What; disk?: Disk } | null>(null)
  const prices = usePrices(projectId)
  const priceOf = (disk: Disk) => diskUsdPerHour(disk, prices.data?.items ?? [])
  const [search, setSearch] = useSearchState()
  const rows = (disks.data ?? []).filter(
    (disk) =>
      fitsSelector(disk, search.labels ?? '') &&
      `${disk.name} ${disk.id}`.toLowerCase().includes((search.q ?? '').toLowerCase()) &&
      (!search.use || (search.use === 'attached') === isAttached(disk)),
  )
  const nameOf = useEndpointNames(projectId)
  const create = (
    <Button
      kind="primary"
      icon={<Icon name="plus" size={16} />}
      reason={whyNot}
      onClick={() => setOpen({ what: 'create' })}
    >
      Create disk
    </Button>
  )
  const columns: Column<Disk>[] = [
    {
      key: 'name',
      title: 'Name',
      width: 'minmax(120px, 2fr)',
      sortBy: (disk) => disk.name,
      cell: (disk) => (
        <span
          className={`font-medium ${search.disk === disk.id ? 'text-accent-text' : ''}`}
          title={disk.description || disk.id}
        >
          {disk.name}
          <ProtectedMark resource={disk} />
        </span>
      ),
    },
    {
      key: 'size',
      title: 'Size',
      width: '92px',
      align: 'right',
      isFoldable: true,
      sortBy: (disk) => gibOf(disk.size),
      cell: (disk) => sizeText(disk.size),
    },
    {
      key: 'type',
      title: 'Type',
      width: 'minmax(124px, 1fr)',
      isFoldable: true,
      cell: (disk) => disk.type,
    },
    {
      key: 'price',
      title: 'USD/month',
      width: '112px',
      align: 'right',
      isFoldable: true,
      sortBy: (disk) => priceOf(disk) ?? 0,
      cell: (disk) => {
        const price = priceOf(disk)
        return price === null ? (
          noValue
        ) : (
          <span title={`${usd(price)}/h`}>{amount(price * hoursPerMonth)}</span>
        )
      },
    },
    {
      key: 'location',
      title: 'Location',
      width: 'minmax(106px, 1fr)',
      isFoldable: true,
      cell: (disk) => <NoBreak>{disk.location}</NoBreak>,
    },
    {
      key: 'state',
      title: 'State',
      width: '112px',
      cell: (disk) => (
        <StateBadge
          state={disk.state === 'available' && disk.attached_to.length > 0 ? 'attached' : disk.state}
          since={disk.updated_at}
        />
      ),
    },
    {
      key: 'attached',
      title: 'Attached to',
      width: 'minmax(104px, 1.4fr)',
      isFoldable: true,
      cell: (disk) =>
        disk.attached_to.length === 0
          ? noValue
          : disk.attached_to.map(({ vm_id, mode, vm_deleted }, index) => (
              <span key={vm_id}>
                {index > 0 && ', '}
                {vm_deleted ? (
                  <span className="text-ink-muted">a deleted VM (until its host is back)</span>
                ) : (
                  <Link
                    to="/projects/$projectId/vms/$vmId"
                    params={{ projectId, vmId: vm_id }}
                    className="link"
                  >
                    {nameOf(vm_id)}
                  </Link>
                )}
                {mode === 'read-only' && <span className="text-ink-muted"> read-only</span>}
              </span>
            )),
    },
    ...(rows.some(({ labels }) => Object.keys(labels).length > 0)
      ? [
          {
            key: 'labels',
            title: 'Labels',
            width: 'minmax(120px, 1fr)',
            isFoldable: true,
            cell: ({ labels }: Disk) =>
              Object.keys(labels).length > 0 && (
                <Labels labels={labels} onPick={(label) => setSearch({ labels: label })} />
              ),
          },
        ]
      : []),
    actionColumn('128px', (disk) => {
      const busy = disk.state === 'available' ? undefined : `The disk is ${disk.state}.`
      return (
        <>
          {canDetach(disk) ? (
            <Button
              size="small"
              aria-label={`Detach ${disk.name}`}
              reason={whyNot ?? busy}
              onClick={() => setOpen({ what: 'detach', disk })}
            >
              Detach
            </Button>
          ) : (
            <Button
              size="small"
              reason={whyNot ?? busy ?? attachProblem(disk)}
              onClick={() => setOpen({ what: 'attach', disk })}
            >
              Attach
            </Button>
          )}
          <RowMenu {...{ disk, whyNot, busy }} onAsk={(what) => setOpen({ what, disk })} />
        </>
      )
    }),
  ]
  return (
    <Page title="Disks" actions={create} isWide>
      <StorageTabs />
      <Loaded query={disks}>
        {(data) =>
          data.length === 0 ? (
            <Empty
              title="No disks yet"
              action={create}
              cli="slipway disk create datasets --size 500GiB --location us-east1-a"
              curl={curlCommand('POST', `/v0.1/projects/${projectId}/disks`, {
                name: 'datasets',
                size: '500GiB',
                location: 'us-east1-a',
              })}
            >
              A disk is kept when its VM is deleted. Many VMs can write to a shared volume at the same time,
              but only VMs of a type that takes up a whole host.
            </Empty>
          ) : (
            <>
              <div className="filter-bar">
                <FilterInput
                  label="Filter by name or ID"
                  value={search.q ?? ''}
                  onChange={(q) => setSearch({ q })}
                />
                <Select
                  isSmall
                  label="Attachment"
                  value={search.use ?? ''}
                  onChange={(use) => setSearch({ use })}
                  choices={[
                    { value: '', label: 'All disks' },
                    { value: 'attached', label: 'attached' },
                    { value: 'unattached', label: 'unattached' },
                  ]}
                />
                <LabelFilter value={search.labels ?? ''} onChange={(labels) => setSearch({ labels })} />
                <span className="figures text-ink-muted max-xl:w-full xl:ml-auto">
                  {plural(rows.length, 'disk')} ·{' '}
                  {monthlyText(rows.reduce((sum, disk) => sum + (priceOf(disk) ?? 0), 0))}
                </span>
              </div>
              <Table
                label="Disks"
                rows={rows}
                columns={columns}
                rowKey={(disk) => disk.id}
                sort={search.sort ?? ''}
                onSort={(sort) => setSearch({ sort })}
                empty={<p className="text-ink-muted">No disks match the filters.</p>}
              />
            </>
          )
        }
      </Loaded>
      {open?.what === 'create' && <CreateDisk projectId={projectId} onClose={() => setOpen(null)} />}
      {open?.what === 'attach' && open.disk && (
        <AttachThisDisk projectId={projectId} disk={open.disk} onClose={() => setOpen(null)} />
      )}
      {open?.what === 'detach' && open.disk && (
        <DetachFromVm projectId={projectId} disk={open.disk} onClose={() => setOpen(null)} />
      )}
      {open?.what === 'edit' && open.disk && (
        <AnnotationDialog
          resource={open.disk}
          kind="disk"
          projectId={projectId}
          onClose={() => setOpen(null)}
        />
      )}
      {open?.what === 'grow' && open.disk && (
        <GrowDialog projectId={projectId} disk={open.disk} onClose={() => setOpen(null)} />
      )}
      {open?.what === 'delete' && open.disk && (
        <DeleteDialog projectId={projectId} disk={open.disk} onClose={() => setOpen(null)} />
      )}
    </Page>
  )
}

/** A disk that several VMs use is detached on each VM's page. */
const canDetach = ({ attached_to }: Disk): boolean => attached_to.length === 1 && !attached_to[0]!.vm_deleted

/** A persistent disk that is attached read-write cannot be attached again. */
const attachProblem = ({ type, attached_to }: Disk): string | undefined =>
  type === 'persistent-ssd' && attached_to.some(({ mode }) => mode === 'read-write')
    ? 'The disk is attached to a VM. Detach it on the VM’s page first.'
    : undefined

import type { Snapshot } from '@slipway/sdk'
import { useState } from 'react'
import { useProjectId, useWhyNot } from '../../api/me.ts'
import { readAll } from '../../api/read.ts'
import { useQuery } from '../../api/use-query.ts'
import { AnnotationDialog, protectionReason } from '../../features/annotations.tsx'
import { StorageTabs } from '../../features/page-tabs.tsx'
import { curlCommand } from '../../lib/shell.ts'
import { useSearchState } from '../../lib/use-search-state.ts'
import { Button } from '../../ui/button.tsx'
import { actionColumn } from '../../ui/columns/action-column.tsx'
import { Icon } from '../../ui/icon.tsx'
import { Loaded } from '../../ui/loaded.tsx'
import { Empty, Page } from '../../ui/page.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { CopiesTotal, copyColumns } from './copies.tsx'
import { CreateSnapshot, DeleteSnapshot, RestoreSnapshot } from './snapshot-dialogs.tsx'

type What = 'create' | 'restore' | 'edit' | 'delete'

/** The project's snapshots: copies of disks, from which disks are created. */
export function Snapshots() {
  const projectId = useProjectId()
  const snapshots = useQuery(readAll('snapshotList', { project_id: projectId }))
  const disks = useQuery(readAll('diskList', { project_id: projectId }))
  const diskNames = new Map((disks.data ?? []).map(({ id, name }) => [id, name]))
  const sourceOf = (diskId: string) => diskNames.get(diskId) ?? (disks.data ? 'deleted disk' : '…')
  const whyNot = useWhyNot('member')
  const [search, setSearch] = useSearchState()
  const [open, setOpen] = useState<{ what: What; snapshot?: Snapshot } | null>(null)
  const close = () => setOpen(null)
  const create = (
    <Button
      kind="primary"
      icon={<Icon name="plus" size={16} />}
      reason={whyNot}
      onClick={() => setOpen({ what: 'create' })}
    >
      Create snapshot
    </Button>
  )
  const [name, ...copied] = copyColumns<Snapshot>(({ location }) => location)
  const columns: Column<Snapshot>[] = [
    name!,
    {
      key: 'source',
      title: 'Disk',
      width: 'minmax(112px, 1.4fr)',
      isFoldable: true,
      cell: ({ created_from }) => <span title={created_from}>{sourceOf(created_from)}</span>,
    },
    ...copied,
    actionColumn('190px', (snapshot) => {
      const busy = snapshot.state === 'available' ? undefined : `The snapshot is ${snapshot.state}.`
      return (
        <>
          <Button size="small" reason={whyNot ?? busy} onClick={() => setOpen({ what: 'restore', snapshot })}>
            Restore
          </Button>
          <Button size="small" reason={whyNot} onClick={() => setOpen({ what: 'edit', snapshot })}>
            Edit
          </Button>
          <Button
            size="small"
            kind="danger"
            reason={whyNot ?? protectionReason(snapshot)}
            onClick={() => setOpen({ what: 'delete', snapshot })}
          >
            Delete
          </Button>
        </>
      )
    }),
  ]
  return (
    <Page title="Disks" actions={create} isWide>
      <StorageTabs />
      <Loaded query={snapshots}>
        {(rows) =>
          rows.length === 0 ? (
            <Empty
              title="No snapshots yet"
              action={create}
              cli="slipway snapshot create datasets-monday --disk datasets"
              curl={curlCommand('POST', `/v0.1/projects/${projectId}/snapshots`, {
                name: 'datasets-monday',
                disk_id: '…',
              })}
            >
              A snapshot is a copy of a disk at one point in time. You can create disks from a snapshot, even
              after the original disk is deleted.
            </Empty>
          ) : (
            <>
              <CopiesTotal projectId={projectId} copies={rows} noun="snapshot" product="snapshot" />
              <Table
                label="Snapshots"
                rows={rows}
                columns={columns}
                rowKey={({ id }) => id}
                sort={search.sort ?? ''}
                onSort={(sort) => setSearch({ sort })}
              />
            </>
          )
        }
      </Loaded>
      {open?.what === 'create' && <CreateSnapshot projectId={projectId} onClose={close} />}
      {open?.what === 'restore' && open.snapshot && (
        <RestoreSnapshot projectId={projectId} snapshot={open.snapshot} onClose={close} />
      )}
      {open?.what === 'edit' && open.snapshot && (
        <AnnotationDialog resource={open.snapshot} kind="snapshot" projectId={projectId} onClose={close} />
      )}
      {open?.what === 'delete' && open.snapshot && (
        <DeleteSnapshot projectId={projectId} snapshot={open.snapshot} onClose={close} />
      )}
    </Page>
  )
}

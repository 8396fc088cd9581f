import type { Disk } from '@slipway/sdk'
import { Link } from '@tanstack/react-router'
import { Plus } from 'lucide-react'
import { useState } from 'react'
import { useProjectId, useWhyNot } from '../../api/me.ts'
import { readAll } from '../../api/read.ts'
import { useEndpointNames } from '../../api/resource-names.ts'
import { useQuery } from '../../api/use-query.ts'
import { curlLine } from '../../lib/command-lines.ts'
import { sizeWords } from '../../lib/format.ts'
import { useSearchState } from '../../lib/use-search-state.ts'
import { Button } from '../../ui/button.tsx'
import { Loaded } from '../../ui/loaded.tsx'
import { Empty, Page } from '../../ui/page.tsx'
import { StateBadge } from '../../ui/state.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { Age } from '../../ui/time.tsx'
import { DeleteDialog, GrowDialog } from './change-dialogs.tsx'
import { CreateDialog } from './create-dialog.tsx'

export function Disks() {
  const projectId = useProjectId()
  const disks = useQuery(readAll('diskList', { project_id: projectId }))
  const whyNot = useWhyNot('member')
  const [open, setOpen] = useState<{ what: 'create' | 'grow' | 'delete'; disk?: Disk } | null>(null)
  const [search] = useSearchState()
  const nameOf = useEndpointNames(projectId)
  const create = (
    <Button
      kind="primary"
      icon={<Plus size={16} />}
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
      width: 'minmax(140px, 2fr)',
      cell: (disk) => (
        <span className={`font-medium ${search.disk === disk.id ? 'text-accent-text' : ''}`} title={disk.id}>
          {disk.name}
        </span>
      ),
    },
    { key: 'type', title: 'Type', width: 'minmax(140px, 1fr)', cell: (disk) => disk.type },
    { key: 'size', title: 'Size', width: '90px', align: 'right', cell: (disk) => sizeWords(disk.size) },
    { key: 'location', title: 'Location', width: 'minmax(110px, 1fr)', cell: (disk) => disk.location },
    {
      key: 'state',
      title: 'State',
      width: '140px',
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
      width: 'minmax(140px, 1.4fr)',
      cell: (disk) =>
        disk.attached_to.length === 0 ? (
          <span className="text-ink-muted">–</span>
        ) : (
          disk.attached_to.map(({ vm_id, mode, vm_deleted }, index) => (
            <span key={vm_id}>
              {index > 0 && ', '}
              {vm_deleted ? (
                <span className="text-ink-muted">a deleted VM, until its host is back</span>
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
          ))
        ),
    },
    {
      key: 'age',
      title: 'Age',
      width: '70px',
      align: 'right',
      cell: (disk) => <Age iso={disk.created_at} />,
    },
    {
      key: 'actions',
      title: '',
      width: '150px',
      align: 'right',
      isBare: true,
      cell: (disk) => {
        const busy = disk.state === 'available' ? undefined : `It is ${disk.state}.`
        return (
          <span className="inline-flex gap-1">
            <Button size="small" reason={whyNot ?? busy} onClick={() => setOpen({ what: 'grow', disk })}>
              Grow
            </Button>
            <Button
              size="small"
              kind="danger"
              reason={whyNot ?? busy ?? (disk.attached_to.length > 0 ? whyAttached(disk) : undefined)}
              onClick={() => setOpen({ what: 'delete', disk })}
            >
              Delete
            </Button>
          </span>
        )
      },
    },
  ]
  return (
    <Page title="Disks" actions={create} isWide>
      <Loaded query={disks}>
        {(data) =>
          data.length === 0 ? (
            <Empty
              title="No disk yet"
              action={create}
              cli="slipway disk create datasets --size 500GiB --location us-east1-a"
              curl={curlLine('POST', `/v0.1/projects/${projectId}/disks`, {
                name: 'datasets',
                size: '500GiB',
                location: 'us-east1-a',
              })}
            >
              A disk outlives the VMs it is attached to. A shared volume can be written by many whole-host VMs
              at once.
            </Empty>
          ) : (
            <Table label="Disks" rows={data} columns={columns} rowKey={(disk) => disk.id} />
          )
        }
      </Loaded>
      {open?.what === 'create' && <CreateDialog projectId={projectId} onClose={() => setOpen(null)} />}
      {open?.what === 'grow' && open.disk && (
        <GrowDialog projectId={projectId} disk={open.disk} onClose={() => setOpen(null)} />
      )}
      {open?.what === 'delete' && open.disk && (
        <DeleteDialog projectId={projectId} disk={open.disk} onClose={() => setOpen(null)} />
      )}
    </Page>
  )
}

const whyAttached = (disk: Disk) =>
  disk.attached_to.some(({ vm_deleted }) => vm_deleted)
    ? 'Its VM was deleted while its host is away.'
    : 'Detach it first.'

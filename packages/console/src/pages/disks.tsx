import type { Disk, DiskType } from '@slipway/sdk'
import { Link } from '@tanstack/react-router'
import { Plus } from 'lucide-react'
import { useState } from 'react'
import { useOperation } from '../api/actions.ts'
import { client } from '../api/client.ts'
import { read, readAll } from '../api/read.ts'
import { useQuery } from '../api/use-query.ts'
import { useProjectId, useWhyNot } from '../app/me.ts'
import { usd } from '../lib/format.ts'
import { nameProblem } from '../lib/names.ts'
import { useEndpointNames } from '../lib/use-endpoint-names.ts'
import { useSearchState } from '../lib/use-search.ts'
import { Button } from '../ui/button.tsx'
import { curlLine } from '../ui/command-lines.tsx'
import { Confirm, FormDialog } from '../ui/dialog.tsx'
import { ErrorState } from '../ui/error.tsx'
import { SelectField, TextField } from '../ui/field.tsx'
import { Empty, Page, Skeleton } from '../ui/page.tsx'
import { StateBadge } from '../ui/state.tsx'
import { type Column, Table } from '../ui/table.tsx'
import { Age } from '../ui/time.tsx'

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
    { key: 'size', title: 'Size', width: '90px', align: 'right', cell: (disk) => disk.size },
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
          disk.attached_to.map(({ vm_id, mode }, index) => (
            <span key={vm_id}>
              {index > 0 && ', '}
              <Link to="/projects/$projectId/vms/$vmId" params={{ projectId, vmId: vm_id }} className="link">
                {nameOf(vm_id)}
              </Link>
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
              reason={whyNot ?? busy ?? (disk.attached_to.length > 0 ? 'Detach it first.' : undefined)}
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
      {disks.error && !disks.data ? (
        <ErrorState error={disks.error} onRetry={() => disks.refetch()} />
      ) : !disks.data ? (
        <Skeleton />
      ) : disks.data.length === 0 ? (
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
          A disk outlives the VMs it is attached to. A shared volume can be written by many whole-host VMs at
          once.
        </Empty>
      ) : (
        <Table label="Disks" rows={disks.data} columns={columns} rowKey={(disk) => disk.id} />
      )}
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

interface DialogProps {
  projectId: string
  onClose: () => void
}

const unitOf: Record<DiskType, 'GiB' | 'TiB'> = { 'persistent-ssd': 'GiB', 'shared-volume': 'TiB' }
const gibPerTib = 1024

function CreateDialog({ projectId, onClose }: DialogProps) {
  const params = { project_id: projectId }
  const locations = useQuery(read('locationList', { params }))
  const prices = useQuery(read('priceList', { params }))
  const [name, setName] = useState('')
  const [type, setType] = useState<DiskType>('persistent-ssd')
  const [size, setSize] = useState('100')
  const [place, setPlace] = useState('')
  const [blockSize, setBlockSize] = useState('512')
  const location = place || locations.data?.items[0]?.name || ''
  const unit = unitOf[type]
  const price = prices.data?.items.find(({ product_name }) => product_name === type)
  const gb = Number(size) * (unit === 'TiB' ? gibPerTib : 1)
  const create = useOperation({
    projectId,
    run: () =>
      client.diskCreate(params, {
        name,
        size: `${size}${unit}`,
        location,
        type,
        ...(type === 'persistent-ssd' && { block_size: Number(blockSize) as 512 | 4096 }),
      }),
    done: () => `Created the disk ${name}`,
    failed: () => `The disk ${name} could not be created`,
    touches: ['diskList', 'quotaList'],
    showsErrors: true,
  })
  const problem =
    name === ''
      ? 'Give it a name'
      : nameProblem(name) || (/^[1-9]\d*$/.test(size) ? '' : 'The size is a whole number')
  return (
    <FormDialog
      isOpen
      onClose={onClose}
      title="Create disk"
      action="Create disk"
      isBusy={create.isPending}
      error={create.error}
      reason={problem || undefined}
      onSubmit={() => create.mutate(undefined, { onSuccess: onClose })}
    >
      <TextField
        label="Name"
        value={name}
        onChange={setName}
        problem={nameProblem(name)}
        autoComplete="off"
        autoFocus
      />
      <SelectField
        label="Type"
        value={type}
        onChange={(value) => {
          setType(value as DiskType)
          setSize(value === 'shared-volume' ? '1' : '100')
        }}
        choices={[
          { value: 'persistent-ssd', label: 'persistent-ssd: for one VM, or many that only read' },
          { value: 'shared-volume', label: 'shared-volume: written by many whole-host VMs' },
        ]}
      />
      <div className="grid grid-cols-2 gap-4">
        <TextField
          label={`Size, ${unit}`}
          inputMode="numeric"
          value={size}
          onChange={setSize}
          hint={price && gb > 0 ? `${usd(price.usd * gb)} per hour` : undefined}
        />
        <SelectField
          label="Location"
          value={location}
          onChange={setPlace}
          choices={(locations.data?.items ?? []).map(({ name }) => ({ value: name, label: name }))}
        />
      </div>
      {type === 'persistent-ssd' && (
        <SelectField
          label="Block size"
          value={blockSize}
          onChange={setBlockSize}
          choices={[
            { value: '512', label: '512 bytes' },
            { value: '4096', label: '4096 bytes' },
          ]}
        />
      )}
    </FormDialog>
  )
}

function GrowDialog({ projectId, disk, onClose }: DialogProps & { disk: Disk }) {
  const [, amount = '', unit = 'GiB'] = /^(\d+)(GiB|TiB)$/.exec(disk.size) ?? []
  const [size, setSize] = useState(amount)
  const grow = useOperation({
    projectId,
    run: () => client.diskUpdate({ project_id: projectId, disk_id: disk.id }, { size: `${size}${unit}` }),
    done: () => `${disk.name} has ${size}${unit}`,
    failed: () => `${disk.name} could not be grown`,
    touches: ['diskList', 'quotaList'],
    showsErrors: true,
  })
  return (
    <FormDialog
      isOpen
      onClose={onClose}
      title={`Grow ${disk.name}`}
      action="Grow disk"
      isBusy={grow.isPending}
      error={grow.error}
      reason={Number(size) > Number(amount) ? undefined : `More than ${disk.size}: a disk only grows`}
      onSubmit={() => grow.mutate(undefined, { onSuccess: onClose })}
    >
      <TextField
        label={`New size, ${unit}`}
        inputMode="numeric"
        value={size}
        onChange={setSize}
        hint={`Now ${disk.size}. Grow the file system inside the VM afterwards.`}
        autoFocus
      />
    </FormDialog>
  )
}

function DeleteDialog({ projectId, disk, onClose }: DialogProps & { disk: Disk }) {
  const remove = useOperation({
    projectId,
    run: () => client.diskDelete({ project_id: projectId, disk_id: disk.id }),
    done: () => `Deleted the disk ${disk.name}`,
    failed: () => `The disk ${disk.name} could not be deleted`,
    touches: ['diskList', 'quotaList'],
    showsErrors: true,
  })
  return (
    <Confirm
      isOpen
      onClose={onClose}
      title={`Delete ${disk.name}`}
      action="Delete disk"
      isBusy={remove.isPending}
      error={remove.error}
      nameToType={disk.name}
      onConfirm={() => remove.mutate(undefined, { onSuccess: onClose })}
    >
      <p>The disk goes with all {disk.size} of data on it. This cannot be undone.</p>
    </Confirm>
  )
}

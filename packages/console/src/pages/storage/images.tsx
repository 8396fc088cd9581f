import type { CustomImage } from '@slipway/sdk'
import { useState } from 'react'
import { useProjectId, useWhyNot } from '../../api/me.ts'
import { usePriceOf } from '../../api/prices.ts'
import { readAll } from '../../api/read.ts'
import { useQuery } from '../../api/use-query.ts'
import { AnnotationDialog, protectionReason } from '../../features/annotations.tsx'
import { StorageTabs } from '../../features/page-tabs.tsx'
import { plural } from '../../lib/format.ts'
import { curlCommand } from '../../lib/shell.ts'
import { useSearchState } from '../../lib/use-search-state.ts'
import { Button } from '../../ui/button.tsx'
import { actionColumn } from '../../ui/columns/action-column.tsx'
import { ageColumn } from '../../ui/columns/time-column.tsx'
import { Icon } from '../../ui/icon.tsx'
import { Loaded } from '../../ui/loaded.tsx'
import { Empty, Page } from '../../ui/page.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { copyColumns } from './copies.tsx'
import { CreateImage, DeleteImage } from './image-dialogs.tsx'

type What = 'create' | 'edit' | 'delete'

/** The project's images: copies of OS disks, from which VMs are created. */
export function CustomImages() {
  const projectId = useProjectId()
  const images = useQuery(readAll('customImageList', { project_id: projectId }))
  const usdPerGibHour = usePriceOf(projectId)('custom-image')
  const whyNot = useWhyNot('member')
  const [search, setSearch] = useSearchState()
  const [open, setOpen] = useState<{ what: What; image?: CustomImage } | null>(null)
  const close = () => setOpen(null)
  const create = (
    <Button
      kind="primary"
      icon={<Icon name="plus" size={16} />}
      reason={whyNot}
      onClick={() => setOpen({ what: 'create' })}
    >
      Create image
    </Button>
  )
  const columns: Column<CustomImage>[] = [
    ...copyColumns<CustomImage>(({ locations }) => locations.join(', '), usdPerGibHour),
    ageColumn as Column<CustomImage>,
    actionColumn('130px', (image) => (
      <>
        <Button size="small" reason={whyNot} onClick={() => setOpen({ what: 'edit', image })}>
          Edit
        </Button>
        <Button
          size="small"
          kind="danger"
          reason={whyNot ?? protectionReason(image)}
          onClick={() => setOpen({ what: 'delete', image })}
        >
          Delete
        </Button>
      </>
    )),
  ]
  return (
    <Page title="Disks" actions={create} isWide>
      <StorageTabs />
      <Loaded query={images}>
        {(rows) =>
          rows.length === 0 ? (
            <Empty
              title="No images yet"
              action={create}
              cli="slipway custom-image create trainer:v1 --vm train-7"
              curl={curlCommand('POST', `/v0.1/projects/${projectId}/custom-images`, {
                name: 'trainer:v1',
                vm_id: '…',
              })}
            >
              An image has the content of a VM’s OS disk. New VMs from the image start with everything that is
              installed on that VM.
            </Empty>
          ) : (
            <>
              <p className="figures text-ink-muted">{plural(rows.length, 'image')}</p>
              <Table
                label="Images"
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
      {open?.what === 'create' && <CreateImage projectId={projectId} onClose={close} />}
      {open?.what === 'edit' && open.image && (
        <AnnotationDialog resource={open.image} kind="image" projectId={projectId} onClose={close} />
      )}
      {open?.what === 'delete' && open.image && (
        <DeleteImage projectId={projectId} image={open.image} onClose={close} />
      )}
    </Page>
  )
}

import type { Image } from '@slipway/sdk'
import { useState } from 'react'
import { useAction } from '../../api/actions.ts'
import { client } from '../../api/client.ts'
import { read } from '../../api/read.ts'
import { useQuery } from '../../api/use-query.ts'
import { settingsPollMs } from '../../features/fleet/poll.ts'
import { FleetPage } from '../../features/page-tabs.tsx'
import { curlCommand, operatorCommands, shellQuote } from '../../lib/shell.ts'
import { storedText } from '../../lib/units/sizes.ts'
import { Button, RowButton } from '../../ui/button.tsx'
import { actionColumn } from '../../ui/columns/action-column.tsx'
import { timestampColumn } from '../../ui/columns/time-column.tsx'
import { Confirm, FormDialog, submitProps } from '../../ui/dialog.tsx'
import { CheckField, TextField } from '../../ui/field.tsx'
import { Icon } from '../../ui/icon.tsx'
import { Loaded } from '../../ui/loaded.tsx'
import { Sentence } from '../../ui/no-break.tsx'
import { Empty } from '../../ui/page.tsx'
import { type Column, Table } from '../../ui/table.tsx'

/** The size of images in simulated locations is not known. */
const sizeColumn: Column<Image> = {
  key: 'size',
  title: 'Size',
  width: '96px',
  align: 'right',
  cell: ({ size_bytes: bytes }) =>
    bytes > 0 && bytes < 1024 ** 3 ? `${Math.ceil(bytes / 1024 ** 2)} MiB` : storedText(bytes),
}

export function Images() {
  const images = useQuery({ ...read('adminImageList', {}), refetchInterval: settingsPollMs })
  const [open, setOpen] = useState<{ what: 'create' | 'change' | 'delete'; image?: Image } | null>(null)
  const create = (
    <Button kind="primary" icon={<Icon name="plus" size={16} />} onClick={() => setOpen({ what: 'create' })}>
      Register image
    </Button>
  )
  return (
    <FleetPage actions={create}>
      <Loaded query={images}>
        {(data) => (
          <Table
            label="Images"
            rows={data.items}
            rowKey={(image) => image.id}
            empty={
              <Empty
                title="No images yet"
                action={create}
                cli="slipway admin image create debian13:latest --locations us-east1-a"
                curl={curlCommand('POST', '/v0.1/admin/images', {
                  name: 'debian13:latest',
                  locations: ['us-east1-a'],
                })}
              >
                A VM is created from an image. Choose the locations where each image is available.
              </Empty>
            }
            columns={[
              {
                key: 'name',
                title: 'Name',
                width: 'minmax(210px, 1.4fr)',
                cell: (image) => <span className="font-medium">{image.name}</span>,
              },
              {
                key: 'description',
                title: 'Description',
                width: 'minmax(140px, 2fr)',
                isFoldable: true,
                cell: (image) => image.description,
              },
              {
                key: 'locations',
                title: 'Locations',
                width: 'minmax(215px, 1.6fr)',
                isFoldable: true,
                cell: (image) => <Sentence text={image.locations.join(', ') || 'none'} />,
              },
              ...(data.items.some(({ size_bytes }) => size_bytes > 0) ? [sizeColumn] : []),
              { ...timestampColumn('Registered', 'created_at'), width: '156px', isFoldable: true },
              actionColumn('176px', (image: Image) => (
                <>
                  <Button
                    size="small"
                    onClick={() => setOpen({ what: 'change', image })}
                    aria-label={`Locations of ${image.name}`}
                  >
                    Locations
                  </Button>
                  <RowButton
                    verb="Remove"
                    name={image.name}
                    kind="danger"
                    onClick={() => setOpen({ what: 'delete', image })}
                  />
                </>
              )),
            ]}
          />
        )}
      </Loaded>
      {open?.what === 'delete' && open.image ? (
        <RemoveDialog image={open.image} onClose={() => setOpen(null)} />
      ) : (
        open && <ImageDialog image={open.image} onClose={() => setOpen(null)} />
      )}
    </FleetPage>
  )
}

function ImageDialog({ image, onClose }: { image?: Image | undefined; onClose: () => void }) {
  const locations = useQuery(read('adminLocationList', {}))
  const [name, setName] = useState('')
  const [description, setDescription] = useState('')
  const [chosen, setChosen] = useState<string[]>(image?.locations ?? [])
  const request = { name, description, locations: chosen }
  const isUnchanged =
    chosen.length === image?.locations.length && chosen.every((each) => image.locations.includes(each))
  const save = useAction({
    run: () =>
      image
        ? client.adminImageUpdate({ image_id: image.id }, { locations: chosen })
        : client.adminImageCreate(request),
    done: () => (image ? `Changed the locations of ${image.name}` : `Registered ${name}`),
    invalidates: ['adminImageList', 'imageList'],
    showsErrors: true,
  })
  return (
    <FormDialog
      isOpen
      onClose={onClose}
      title={image ? `Locations of ${image.name}` : 'Register image'}
      action={image ? 'Save changes' : 'Register image'}
      {...submitProps(save, undefined, onClose)}
      reason={isUnchanged ? 'No changes yet' : image || name ? undefined : 'Enter a name'}
      commands={
        image
          ? operatorCommands({
              cli: `slipway admin image change ${shellQuote(image.name)} --locations ${chosen.join(',') || 'LOCATIONS'}`,
              method: 'PATCH',
              path: `/images/${image.id}`,
              body: { locations: chosen },
            })
          : operatorCommands({
              cli: `slipway admin image create ${shellQuote(name || 'NAME')} --locations ${chosen.join(',') || 'LOCATIONS'}${description ? ` --description ${shellQuote(description)}` : ''}`,
              path: '/images',
              body: request,
            })
      }
    >
      {!image && (
        <>
          <TextField
            label="Name"
            value={name}
            onChange={setName}
            placeholder="ubuntu24.04-nvidia:latest"
            isMono
            autoFocus
          />
          <TextField label="Description (optional)" value={description} onChange={setDescription} />
        </>
      )}
      <fieldset className="flex flex-col gap-2">
        <legend className="mb-1 text-sm font-medium">{image ? 'Locations' : 'Locations (optional)'}</legend>
        <p className="text-sm text-ink-muted">
          No VM can be created from an image without locations.
          {!image && (
            <>
              {' '}
              Locations with real VMs accept only images that were imported with the command{' '}
              <span className="mono whitespace-nowrap">slipway-server images</span>.
            </>
          )}
        </p>
        {(locations.data?.items ?? []).map((location) => (
          <CheckField
            key={location.name}
            label={location.name}
            isChecked={chosen.includes(location.name)}
            onChange={(isChecked) =>
              setChosen(
                isChecked ? [...chosen, location.name] : chosen.filter((each) => each !== location.name),
              )
            }
          />
        ))}
      </fieldset>
    </FormDialog>
  )
}

function RemoveDialog({ image, onClose }: { image: Image; onClose: () => void }) {
  const remove = useAction({
    run: () => client.adminImageDelete({ image_id: image.id }),
    done: () => `Removed ${image.name}`,
    invalidates: ['adminImageList', 'imageList'],
    showsErrors: true,
  })
  return (
    <Confirm
      isOpen
      onClose={onClose}
      title={`Remove image ${image.name}`}
      action="Remove image"
      commands={operatorCommands({
        cli: `slipway admin image delete ${shellQuote(image.name)}`,
        method: 'DELETE',
        path: `/images/${image.id}`,
      })}
      {...submitProps(remove, undefined, onClose)}
    >
      <p>New VMs will not be able to use this image. Existing VMs will be kept.</p>
    </Confirm>
  )
}

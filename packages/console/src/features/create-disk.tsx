import type { Disk, DiskType } from '@slipway/sdk'
import { useState } from 'react'
import { useAction } from '../api/actions.ts'
import { client } from '../api/client.ts'
import { usePrices } from '../api/prices.ts'
import { read } from '../api/read.ts'
import { useQuery } from '../api/use-query.ts'
import { diskUsdPerHour, monthlyText } from '../lib/disks.ts'
import { usd } from '../lib/format.ts'
import { nameProblem } from '../lib/names.ts'
import { projectCommands, shellQuote } from '../lib/shell.ts'
import { FormDialog, submitProps } from '../ui/dialog.tsx'
import { SelectField, TextField } from '../ui/field.tsx'

const unitOf: Record<DiskType, 'GiB' | 'TiB'> = { 'persistent-ssd': 'GiB', 'shared-volume': 'TiB' }
const defaultBlockSize = '512'
const uses: Record<DiskType, string> = {
  'persistent-ssd': 'Can be attached read-write to one VM, or read-only to many.',
  'shared-volume':
    'Can be attached read-write to many VMs, but only to VMs of a type that takes up a whole host.',
}

interface CreateDiskProps {
  projectId: string
  /** The fixed location of the disk. If it is absent, the user chooses one. */
  location?: string
  onClose: () => void
  /** Called when the disk is ready to be attached. */
  onCreated?: (disk: Disk) => void
}

/** The dialog stays open until the disk exists, so that the next form can use it. */
export function CreateDisk({ projectId, location: given = '', onClose, onCreated }: CreateDiskProps) {
  const params = { project_id: projectId }
  const locations = useQuery(read('locationList', { params }))
  const prices = usePrices(projectId)
  const [name, setName] = useState('')
  const [type, setType] = useState<DiskType>('persistent-ssd')
  const [amount, setAmount] = useState('100')
  const [chosenLocation, setChosenLocation] = useState('')
  const [blockSize, setBlockSize] = useState(defaultBlockSize)
  const location = given || chosenLocation || locations.data?.items[0]?.name || ''
  const unit = unitOf[type]
  const size = `${amount}${unit}`
  const isWholeNumber = /^[1-9]\d*$/.test(amount)
  const price = isWholeNumber ? diskUsdPerHour({ type, size }, prices.data?.items ?? []) : null
  const request = {
    name,
    size,
    location,
    type,
    ...(type === 'persistent-ssd' &&
      blockSize !== defaultBlockSize && { block_size: Number(blockSize) as 512 | 4096 }),
  }
  const create = useAction({
    run: async () => {
      const { operation } = await client.diskCreate(params, request)
      return (await client.wait<Disk>(params, operation)).result
    },
    done: () => `Created disk ${name}`,
    invalidates: ['diskList', 'quotaList'],
    showsErrors: true,
  })
  const problem =
    name === ''
      ? 'Enter a name'
      : nameProblem(name) ||
        (isWholeNumber ? '' : 'The size must be a whole number') ||
        (location ? '' : 'Loading locations')
  return (
    <FormDialog
      isOpen
      onClose={onClose}
      title={given ? `Create disk in ${given}` : 'Create disk'}
      action="Create disk"
      {...submitProps(create, undefined, (disk) => {
        onClose()
        onCreated?.(disk)
      })}
      reason={problem || undefined}
      commands={projectCommands(projectId, {
        cli: [
          `slipway disk create ${shellQuote(name || 'NAME')} --size ${shellQuote(size)} --location ${location}`,
          ...(type === 'persistent-ssd' ? [] : [`--type ${type}`]),
          ...(request.block_size ? [`--block-size ${blockSize}`] : []),
        ].join(' '),
        path: '/disks',
        body: request,
        terraform: 'disk',
      })}
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
          setAmount(value === 'shared-volume' ? '1' : '100')
        }}
        choices={Object.keys(uses).map((value) => ({ value, label: value }))}
        hint={uses[type]}
      />
      <div className="grid grid-cols-2 gap-4">
        <TextField
          label={`Size (${unit})`}
          inputMode="numeric"
          value={amount}
          onChange={setAmount}
          hint={price === null ? undefined : `${usd(price)} per hour, ${monthlyText(price)}`}
        />
        <SelectField
          label="Location"
          value={location}
          onChange={setChosenLocation}
          disabled={given !== ''}
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

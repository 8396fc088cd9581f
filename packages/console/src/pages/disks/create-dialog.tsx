import type { DiskType } from '@slipway/sdk'
import { useState } from 'react'
import { useOperation } from '../../api/actions.ts'
import { client } from '../../api/client.ts'
import { read } from '../../api/read.ts'
import { useQuery } from '../../api/use-query.ts'
import { usd } from '../../lib/format.ts'
import { nameProblem } from '../../lib/names.ts'
import { FormDialog, submitting } from '../../ui/dialog.tsx'
import { SelectField, TextField } from '../../ui/field.tsx'

const unitOf: Record<DiskType, 'GiB' | 'TiB'> = { 'persistent-ssd': 'GiB', 'shared-volume': 'TiB' }
const gibPerTib = 1024

export function CreateDialog({ projectId, onClose }: { projectId: string; onClose: () => void }) {
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
      {...submitting(create, undefined, onClose)}
      reason={problem || undefined}
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

import type { Disk, Price, VmType } from '@slipway/sdk'
import { useState } from 'react'
import { CreateDisk } from '../../features/create-disk.tsx'
import { diskUsdPerHour, monthlyText } from '../../lib/disks.ts'
import { sizeText } from '../../lib/format.ts'
import { Button } from '../../ui/button.tsx'
import { CheckField, Select } from '../../ui/field.tsx'
import type { Draft } from './draft.ts'

interface DiskPickerProps {
  projectId: string
  disks: Disk[]
  prices: Price[]
  location: string
  type: VmType
  /** True if the disks are for several VMs. */
  isForGroup: boolean
  chosen: Draft['disks']
  onChange: (chosen: Draft['disks']) => void
}

/** Selects attachable disks in the location, or creates a disk. */
export function DiskPicker(props: DiskPickerProps) {
  const { projectId, location, chosen, onChange } = props
  const [isCreating, setCreating] = useState(false)
  return (
    <>
      <FreeDisks {...props} />
      <div>
        <Button size="small" onClick={() => setCreating(true)}>
          Create a disk
        </Button>
      </div>
      {isCreating && (
        <CreateDisk
          projectId={projectId}
          location={location}
          onClose={() => setCreating(false)}
          onCreated={(disk) => onChange([...chosen, { disk, mode: 'read-write' }])}
        />
      )}
    </>
  )
}

function FreeDisks({ disks, prices, location, type, isForGroup, chosen, onChange }: DiskPickerProps) {
  const usable = disks.filter(
    (disk) =>
      disk.location === location &&
      disk.state === 'available' &&
      (disk.type === 'shared-volume'
        ? type.isWholeHost
        : disk.attached_to.every(({ mode }) => mode === 'read-only')),
  )
  if (usable.length === 0)
    return <p className="text-ink-muted">No unattached disks here. You can attach one later.</p>
  return (
    <div className="card divide-y divide-line">
      {usable.map((disk) => {
        const entry = chosen.find((each) => each.disk.id === disk.id)
        const mustBeReadOnly = disk.type === 'persistent-ssd' && (isForGroup || disk.attached_to.length > 0)
        const price = diskUsdPerHour(disk, prices)
        const rest = chosen.filter((each) => each.disk.id !== disk.id)
        return (
          <div key={disk.id} className="flex min-h-11 items-center justify-between gap-4 px-3 py-1.5">
            <CheckField
              label={disk.name}
              hint={`${sizeText(disk.size)} ${disk.type}${price === null ? '' : `, ${monthlyText(price)}`}${mustBeReadOnly ? `, read-only because it ${isForGroup ? 'will be attached to several VMs' : 'is attached to another VM'}` : ''}`}
              isChecked={entry !== undefined}
              onChange={(isChecked) =>
                onChange(
                  isChecked ? [...rest, { disk, mode: mustBeReadOnly ? 'read-only' : 'read-write' }] : rest,
                )
              }
            />
            {entry && (
              <Select
                isSmall
                label={`Mode of ${disk.name}`}
                value={entry.mode}
                onChange={(mode) => onChange([...rest, { disk, mode: mode as 'read-write' | 'read-only' }])}
                choices={[
                  { value: 'read-write', label: 'read-write', isOff: mustBeReadOnly },
                  { value: 'read-only', label: 'read-only' },
                ]}
              />
            )}
          </div>
        )
      })}
    </div>
  )
}

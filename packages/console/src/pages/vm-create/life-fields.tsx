import { CheckField, SelectField } from '../../ui/field.tsx'
import type { Draft } from './draft.ts'

const lives = [
  { value: '', label: 'No end' },
  { value: '1', label: '1 hour' },
  { value: '4', label: '4 hours' },
  { value: '12', label: '12 hours' },
  { value: '24', label: '1 day' },
  { value: '72', label: '3 days' },
  { value: '168', label: '7 days' },
  { value: '720', label: '30 days' },
]

export function LifeFields({
  draft,
  onChange,
}: {
  draft: Draft
  onChange: (changes: Partial<Draft>) => void
}) {
  return (
    <>
      <div className="grid gap-4 sm:grid-cols-2">
        <SelectField
          label="Time to live"
          value={draft.ttlHours}
          onChange={(ttlHours) => onChange({ ttlHours })}
          choices={lives}
          hint="Counted from first running. A forgotten GPU is expensive."
        />
        {draft.ttlHours !== '' && (
          <SelectField
            label="Then"
            value={draft.onExpiry}
            onChange={(onExpiry) => onChange({ onExpiry: onExpiry as Draft['onExpiry'] })}
            choices={[
              { value: 'stop', label: 'Stop it: disks stay' },
              { value: 'delete', label: 'Delete it: data disks stay' },
            ]}
          />
        )}
      </div>
      <CheckField
        label="Public address"
        hint="Without one it is reachable from inside its network only."
        isChecked={draft.hasPublicIp}
        onChange={(hasPublicIp) => onChange({ hasPublicIp })}
      />
    </>
  )
}

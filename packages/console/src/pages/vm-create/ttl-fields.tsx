import { expiryChoices, ttlChoices } from '../../lib/ttl.ts'
import { SelectField } from '../../ui/field.tsx'
import type { Draft } from './draft.ts'

interface TtlFieldsProps {
  draft: Draft
  onChange: (changes: Partial<Draft>) => void
}

export function TtlFields({ draft, onChange }: TtlFieldsProps) {
  return (
    <div className="grid gap-4 sm:grid-cols-2">
      <SelectField
        label="Time to live"
        value={draft.ttlHours}
        onChange={(ttlHours) => onChange({ ttlHours })}
        choices={[{ value: '', label: 'No end' }, ...ttlChoices]}
        hint="Counted from first running. A forgotten GPU is expensive."
      />
      {draft.ttlHours !== '' && (
        <SelectField
          label="Then"
          value={draft.onExpiry}
          onChange={(onExpiry) => onChange({ onExpiry: onExpiry as Draft['onExpiry'] })}
          choices={expiryChoices}
        />
      )}
    </div>
  )
}

import { TtlHours } from '../../features/ttl-hours.tsx'
import { expiryChoices } from '../../lib/ttl.ts'
import { SelectField } from '../../ui/field.tsx'
import type { Draft } from './draft.ts'
import { partId } from './problem.tsx'

interface TtlFieldsProps {
  draft: Draft
  onChange: (changes: Partial<Draft>) => void
}

export function TtlFields({ draft, onChange }: TtlFieldsProps) {
  return (
    <div id={partId('ttl')} className="grid gap-4 sm:grid-cols-2">
      <TtlHours
        label="Expires after"
        value={draft.ttlHours}
        onChange={(ttlHours) => onChange({ ttlHours })}
        hint="The time starts when the VM first runs."
      />
      {draft.ttlHours !== '' && (
        <SelectField
          label="On expiry"
          value={draft.onExpiry}
          onChange={(onExpiry) => onChange({ onExpiry: onExpiry as Draft['onExpiry'] })}
          choices={expiryChoices}
        />
      )}
    </div>
  )
}

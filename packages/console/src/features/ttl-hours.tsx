import { useState } from 'react'
import { localDate, timeZone } from '../lib/format.ts'
import { ttlChoices, ttlProblem, ttlSeconds } from '../lib/ttl.ts'
import { SelectField, TextField } from '../ui/field.tsx'

interface TtlHoursProps {
  label: string
  /** The hours as text; empty for no time to live. */
  value: string
  onChange: (hours: string) => void
  canBeNever?: boolean
  hint?: string
  /** True if the time starts now, so that its end is known. */
  startsNow?: boolean
}

/** Chooses a time to live: a usual time, a custom number of hours, or never. */
export function TtlHours({
  label,
  value,
  onChange,
  canBeNever = true,
  hint,
  startsNow = false,
}: TtlHoursProps) {
  const isUsual = (hours: string) => hours === '' || ttlChoices.some((choice) => choice.value === hours)
  const [isCustom, setCustom] = useState(!isUsual(value))
  const [hours, setHours] = useState(value)
  const problem = isCustom ? ttlProblem(hours || '0') : undefined
  const end = new Date(Date.now() + ttlSeconds(hours) * 1000)
  return (
    <>
      <SelectField
        label={label}
        value={isCustom ? 'custom' : value}
        onChange={(choice) => {
          setCustom(choice === 'custom')
          const chosen = choice === 'custom' ? value || '4' : choice
          setHours(chosen)
          onChange(chosen)
        }}
        choices={[
          ...(canBeNever ? [{ value: '', label: 'Never' }] : []),
          ...ttlChoices,
          { value: 'custom', label: 'Custom' },
        ]}
        hint={hint}
      />
      {isCustom && (
        <TextField
          label="Hours"
          inputMode="decimal"
          value={hours}
          onChange={(text) => {
            setHours(text)
            // Empty hours would mean no time to live, so an empty field counts as invalid.
            onChange(text.trim() || '0')
          }}
          problem={problem}
          hint={startsNow && !problem ? `Until ${localDate(end.toISOString())} ${timeZone}` : undefined}
        />
      )}
    </>
  )
}

import { useState } from 'react'
import { localDate, timeZone } from '../lib/format.ts'
import { ttlChoices, ttlProblem, ttlSeconds } from '../lib/ttl.ts'
import { SelectField, TextField } from '../ui/field.tsx'

/** An empty value would mean no time to live, so an empty field has the invalid value 0. */
const hoursOf = (typed: string): string => typed.trim() || '0'

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
  const [typed, setTyped] = useState<string | null>(null)
  // If the value was changed elsewhere, for example by a template, the typed text no longer applies.
  const isTyped = typed !== null && hoursOf(typed) === value
  const isCustom = isTyped || !(value === '' || ttlChoices.some((choice) => choice.value === value))
  const hours = isTyped ? typed : value
  const problem = isCustom ? ttlProblem(value) : undefined
  const end = new Date(Date.now() + ttlSeconds(value) * 1000)
  const until =
    startsNow && value !== '' && !problem ? `Until ${localDate(end.toISOString())} ${timeZone}` : undefined
  return (
    <>
      <SelectField
        label={label}
        value={isCustom ? 'custom' : value}
        onChange={(choice) => {
          const chosen = choice === 'custom' ? value || '4' : choice
          setTyped(choice === 'custom' ? chosen : null)
          onChange(chosen)
        }}
        choices={[
          ...(canBeNever ? [{ value: '', label: 'Never' }] : []),
          ...ttlChoices,
          { value: 'custom', label: 'Custom' },
        ]}
        hint={hint ?? (isCustom ? undefined : until)}
      />
      {isCustom && (
        <TextField
          label="Hours"
          inputMode="decimal"
          value={hours}
          onChange={(text) => {
            setTyped(text)
            onChange(hoursOf(text))
          }}
          problem={problem}
          hint={until}
        />
      )}
    </>
  )
}

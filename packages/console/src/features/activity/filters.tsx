import type { OperationState } from '@slipway/sdk'
import { useEffect, useState } from 'react'
import { projectEventKinds, projectEventTypes } from '../../lib/event-kinds.ts'
import { eventTypeText, resourceText } from '../../lib/format.ts'
import { stateWord } from '../../lib/states.ts'
import { Select } from '../../ui/field.tsx'

interface FilterProps {
  value: string
  onChange: (value: string) => void
}

const operationStates: OperationState[] = ['IN_PROGRESS', 'SUCCEEDED', 'FAILED']

/** Returns the operation state for the word in the URL; undefined for an unknown word. */
export const operationStateOf = (word: string): OperationState | undefined =>
  operationStates.find((state) => stateWord(state) === word)

export const StateFilter = ({ value, onChange }: FilterProps) => (
  <Select
    isSmall
    label="State"
    value={operationStateOf(value) ? value : ''}
    onChange={onChange}
    choices={[
      { value: '', label: 'Any operation state' },
      ...operationStates.map(stateWord).map((word) => ({ value: word, label: word })),
    ]}
  />
)

/**
 * The results of operations are events of their resources, so the kind `operation` has no events of its own.
 */
const wholeKinds = projectEventKinds.map(({ kind }) => kind).filter((kind) => kind !== 'operation')

/** Filters by one type, such as `vm.crashed`, or by all events of a kind of resource, such as `vm.*`. */
export const TypeFilter = ({ value, onChange }: FilterProps) => {
  const isKnown =
    value === '' || projectEventTypes.includes(value) || wholeKinds.some((kind) => value === `${kind}.*`)
  return (
    <Select
      isSmall
      label="Type"
      value={value}
      onChange={onChange}
      choices={[
        { value: '', label: 'Any event' },
        ...(isKnown ? [] : [{ value, label: eventTypeText(value) }]),
        ...projectEventKinds.flatMap(({ kind, text, types }) => [
          ...(wholeKinds.includes(kind)
            ? [{ value: `${kind}.*`, label: `All ${resourceText(kind)} events`, group: text }]
            : []),
          ...types.map((type) => ({ value: type, label: eventTypeText(type), group: text })),
        ]),
      ]}
    />
  )
}

/** Returns the API parameters for a choice of the type filter. */
export function typeQuery(value: string): { type?: string; resource_type?: string } {
  if (value === '') return {}
  return value.endsWith('.*') ? { resource_type: value.slice(0, -2) } : { type: value }
}

interface PeriodProps {
  from: string
  to: string
  onChange: (changes: { from?: string; to?: string }) => void
}

/** The first and the last day of a period, both included, in the time zone of the browser. */
export const PeriodFilter = ({ from, to, onChange }: PeriodProps) => (
  <span className="inline-flex items-center gap-1.5 text-sm text-ink-muted">
    from
    <DayInput label="From date" value={from} max={to} onChange={(from) => onChange({ from })} />
    to
    <DayInput label="To date" value={to} min={from} onChange={(to) => onChange({ to })} />
  </span>
)

interface DayInputProps extends FilterProps {
  label: string
  min?: string
  max?: string
}

const DayInput = ({ label, value, min, max, onChange }: DayInputProps) => (
  <input
    type="date"
    aria-label={label}
    className={`h-7 rounded-md border border-line-strong bg-surface px-2 text-sm ${value ? 'text-ink' : ''}`}
    value={value}
    min={min || undefined}
    max={max || undefined}
    onChange={({ target }) => onChange(target.value)}
  />
)

interface ActorFilterProps extends FilterProps {
  /** Display names by actor. */
  actors: Map<string, string>
}

export const ActorFilter = ({ value, actors, onChange }: ActorFilterProps) => (
  <Select
    isSmall
    label="Actor"
    value={value}
    onChange={onChange}
    choices={[
      { value: '', label: 'Any actor' },
      ...[...actors].map(([value, label]) => ({ value, label })),
      ...(value && !actors.has(value) ? [{ value, label: value }] : []),
    ]}
  />
)

/** Returns the API parameters for the days of a period. An invalid date in the URL is ignored. */
export const periodQuery = (from: string, to: string): { start?: string; end?: string } => {
  const [start, end] = [midnight(from, 0), midnight(to, 1)]
  return { ...(start && { start }), ...(end && { end }) }
}

/** Returns the start of the day that is `days` after `day`, in local time. */
function midnight(day: string, days: number): string {
  const [, year, month, date] = /^(\d{4})-(\d\d)-(\d\d)$/.exec(day) ?? []
  if (!year) return ''
  const time = new Date(Number(year), Number(month) - 1, Number(date) + days)
  return Number.isNaN(time.getTime()) ? '' : time.toISOString()
}

const searchPauseMs = 250

/** Returns the text after typing has paused, so that not every key sends a request. */
export function useDebouncedText(text: string): string {
  const [debounced, setDebounced] = useState(text)
  useEffect(() => {
    const timer = setTimeout(() => setDebounced(text), searchPauseMs)
    return () => clearTimeout(timer)
  }, [text])
  return debounced
}

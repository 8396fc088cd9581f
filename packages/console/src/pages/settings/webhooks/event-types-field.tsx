import { useId, useState } from 'react'
import { eventSelectorText, projectEventKinds } from '../../../lib/event-kinds.ts'
import { eventTypeText, plural } from '../../../lib/format.ts'
import { CheckField } from '../../../ui/field.tsx'
import { Icon } from '../../../ui/icon.tsx'

interface SelectionProps {
  value: string[]
  onChange: (value: string[]) => void
}

interface EventTypesFieldProps {
  /** Null for all events. */
  value: string[] | null
  onChange: (value: string[] | null) => void
}

/** Returns why the selection cannot be saved: for the service, an empty list means all events. */
export const eventTypesProblem = (value: string[] | null): string | undefined =>
  value?.length === 0 ? 'Select at least one event' : undefined

/** Selects event types. A whole kind is stored as `vm.*`, which includes types that are added later. */
export function EventTypesField({ value, onChange }: EventTypesFieldProps) {
  const name = useId()
  return (
    <fieldset>
      <legend className="mb-1 text-sm font-medium">Events</legend>
      <div className="mb-2 flex gap-6">
        <label className="flex items-center gap-2">
          <input
            type="radio"
            name={name}
            className="accent-accent"
            checked={value === null}
            onChange={() => onChange(null)}
          />
          All events
        </label>
        <label className="flex items-center gap-2">
          <input
            type="radio"
            name={name}
            className="accent-accent"
            checked={value !== null}
            onChange={() => onChange(value ?? [])}
          />
          Only these
        </label>
      </div>
      {value && (
        <>
          <p className="mb-2 text-sm text-ink-muted">
            {value.length === 0 ? 'Select at least one event.' : `Only: ${eventSelectorText(value)}.`}
          </p>
          <div className="divide-y divide-line rounded-md border border-line px-3">
            {projectEventKinds.map((each) => (
              <Kind key={each.kind} {...each} value={value} onChange={onChange} />
            ))}
          </div>
        </>
      )}
    </fieldset>
  )
}

/** Shows an event type without the name of its kind, which only screen readers need on every line. */
function TypeName({ kind, type }: { kind: string; type: string }) {
  const text = eventTypeText(type)
  const prefix = `${eventTypeText(kind)} `
  if (!text.startsWith(prefix)) return <span title={type}>{text}</span>
  return (
    <span title={type}>
      <span className="sr-only">{prefix}</span>
      <span className="inline-block first-letter:uppercase">{text.slice(prefix.length)}</span>
    </span>
  )
}

function Kind({ kind, text, types, value, onChange }: SelectionProps & (typeof projectEventKinds)[number]) {
  const id = useId()
  const [isOpen, setOpen] = useState(false)
  const whole = `${kind}.*`
  const isWhole = value.includes(whole)
  const others = value.filter((each) => !each.startsWith(`${kind}.`))
  const chosen = isWhole ? types : types.filter((type) => value.includes(type))
  return (
    <div className="py-1.5">
      <div className="flex items-center justify-between gap-3">
        <CheckField
          label={text}
          isChecked={isWhole || chosen.length === types.length}
          isMixed={chosen.length > 0 && chosen.length < types.length}
          onChange={(isChosen) => onChange([...others, ...(isChosen ? [whole] : [])])}
        />
        <button
          type="button"
          aria-expanded={isOpen}
          aria-controls={id}
          onClick={() => setOpen(!isOpen)}
          className="inline-flex items-center gap-1 rounded-[4px] px-1 text-sm text-ink-muted hover:text-ink"
        >
          {chosen.length === 0 ? plural(types.length, 'event') : `${chosen.length} of ${types.length}`}
          <span className="sr-only"> of {text}</span>
          <Icon name="chevron-down" size={14} aria-hidden="true" className={isOpen ? 'rotate-180' : ''} />
        </button>
      </div>
      <div id={id} className={isOpen ? 'mt-1.5 mb-1 ml-6 grid gap-x-4 gap-y-1 sm:grid-cols-2' : 'hidden'}>
        {types.map((type) => (
          <CheckField
            key={type}
            label={<TypeName kind={kind} type={type} />}
            isChecked={chosen.includes(type)}
            onChange={(isChosen) =>
              onChange([
                ...others,
                ...types.filter((each) => (each === type ? isChosen : chosen.includes(each))),
              ])
            }
          />
        ))}
      </div>
    </div>
  )
}

import { projectEventKinds } from '../../../lib/event-kinds.ts'
import { CheckField } from '../../../ui/field.tsx'

/** Chooses among the events that there are; a whole kind is chosen as `vm.*`, and what it gets later belongs to it. */
export function EventTypesField({
  value,
  onChange,
}: {
  value: string[]
  onChange: (value: string[]) => void
}) {
  const set = (type: string, isChosen: boolean) =>
    onChange(isChosen ? [...value, type] : value.filter((each) => each !== type))
  return (
    <fieldset>
      <legend className="mb-1 text-sm font-medium">Event types</legend>
      <p className="mb-2 text-sm text-ink-muted">
        {value.length === 0 ? 'All of them. Choose some to get only those.' : `Only ${value.join(', ')}.`}
      </p>
      <div className="max-h-56 overflow-y-auto rounded-md border border-line px-3 py-2">
        {projectEventKinds.map(({ kind, types }) => {
          const whole = `${kind}.*`
          const isWhole = value.includes(whole)
          return (
            <details key={kind} className="py-0.5">
              <summary className="cursor-pointer">
                <span className="inline-block align-middle">
                  <CheckField
                    label={whole}
                    isChecked={isWhole}
                    onChange={(isChosen) =>
                      onChange([
                        ...value.filter((each) => !each.startsWith(`${kind}.`)),
                        ...(isChosen ? [whole] : []),
                      ])
                    }
                  />
                </span>
              </summary>
              <div className="mt-1 mb-2 ml-6 grid gap-1 sm:grid-cols-2">
                {types.map((type) => (
                  <CheckField
                    key={type}
                    label={type}
                    isChecked={isWhole || value.includes(type)}
                    onChange={(isChosen) =>
                      isWhole
                        ? onChange([
                            ...value.filter((each) => each !== whole),
                            ...types.filter((each) => each !== type),
                          ])
                        : set(type, isChosen)
                    }
                  />
                ))}
              </div>
            </details>
          )
        })}
      </div>
    </fieldset>
  )
}

import type { Location } from '@slipway/sdk'
import { Stock } from './stock.tsx'

interface LocationPickerProps {
  value: string
  onChange: (name: string) => void
  locations: Location[]
  stockOf: (location: string) => number | undefined
  typeName: string
  /** The number of VMs that must fit. */
  count: number
}

export function LocationPicker({
  value,
  onChange,
  locations,
  stockOf,
  typeName,
  count,
}: LocationPickerProps) {
  return (
    <fieldset>
      <legend className="mb-3 text-lg font-semibold">Location</legend>
      <div className="flex flex-wrap gap-2">
        {locations.map((location) => {
          const stock = stockOf(location.name) ?? 0
          return (
            <label
              key={location.name}
              title={location.description}
              className="card relative flex h-12 cursor-pointer flex-col justify-center px-3 hover:border-line-strong has-checked:border-accent has-checked:bg-accent-soft has-focus-visible:outline-2 has-focus-visible:outline-offset-1 has-focus-visible:outline-accent"
            >
              <input
                type="radio"
                name="location"
                className="absolute opacity-0"
                checked={value === location.name}
                onChange={() => onChange(location.name)}
              />
              <span className="leading-5 font-medium">{location.name}</span>
              <Stock text={stock > 0 ? `${stock} × ${typeName}` : 'out of stock'} isEnough={stock >= count} />
            </label>
          )
        })}
      </div>
    </fieldset>
  )
}

import { type Family, families, familyNames, type Price, type RouteAnswer, vmTypes } from '@slipway/sdk'
import { usd } from '../../lib/format.ts'

type Capacity = RouteAnswer<'capacityList'>['items'][number]

interface TypePickerProps {
  value: string
  onChange: (name: string) => void
  prices: Price[]
  capacities: Capacity[]
}

/** Each type is a card, grouped by GPU. A type that fits nowhere stays in sight and says so. */
export function TypePicker({ value, onChange, prices, capacities }: TypePickerProps) {
  const offered = familyNames.filter((family) => capacities.some(({ type }) => type.startsWith(`${family}.`)))
  return (
    <fieldset className="flex flex-col gap-5">
      <legend className="mb-3 text-lg font-semibold">Type</legend>
      {offered.map((family) => (
        <FamilyCards
          key={family}
          family={family}
          value={value}
          onChange={onChange}
          prices={prices}
          capacities={capacities}
        />
      ))}
    </fieldset>
  )
}

function FamilyCards({ family, value, onChange, prices, capacities }: TypePickerProps & { family: Family }) {
  const types = vmTypes.filter((type) => type.family === family)
  return (
    <div>
      <div className="mb-2 flex items-baseline gap-2">
        <span className="font-medium">{families[family].model}</span>
        <span className="text-sm text-ink-muted">
          {families[family].nvmeGb > 0 ? 'with local NVMe scratch' : 'no local disk'}
        </span>
      </div>
      <div className="grid grid-cols-[repeat(auto-fill,minmax(148px,1fr))] gap-2">
        {types.map((type) => {
          const price = prices.find(({ product_name }) => product_name === type.name)
          const stock = capacities
            .filter((item) => item.type === type.name)
            .reduce((sum, item) => sum + item.quantity, 0)
          return (
            <label
              key={type.name}
              className="card relative flex cursor-pointer flex-col gap-0.5 p-3 hover:border-line-strong has-checked:border-accent has-checked:bg-accent-soft has-focus-visible:outline-2 has-focus-visible:outline-offset-1 has-focus-visible:outline-accent"
            >
              <input
                type="radio"
                name="vm-type"
                className="absolute opacity-0"
                checked={value === type.name}
                onChange={() => onChange(type.name)}
                aria-label={`${type.name}, ${type.cpuCores} cores, ${type.memoryGb} GB memory, ${usd(price?.usd)} per hour`}
              />
              <span className="font-semibold">{type.name}</span>
              <span className="figures text-sm text-ink-muted">
                {type.gpuCount} GPU{type.gpuCount > 1 && 's'} · {type.cpuCores} cores
              </span>
              <span className="figures text-sm text-ink-muted">
                {type.memoryGb.toLocaleString('en-US')} GB memory
              </span>
              <span className="figures mt-1 text-sm font-medium">
                {price ? `${usd(price.usd)}/h` : 'no price set'}
              </span>
              <span className={`figures text-sm ${stock > 0 ? 'text-green-text' : 'text-amber-text'}`}>
                {stock > 0 ? `${stock} available` : 'out of stock'}
              </span>
            </label>
          )
        })}
      </div>
    </div>
  )
}

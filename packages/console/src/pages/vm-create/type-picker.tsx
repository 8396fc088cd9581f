import { type Family, families, familyNames, type Price, type RouteResponse, vmTypes } from '@slipway/sdk'
import { count, plural, usd } from '../../lib/format.ts'
import { memoryText } from '../../lib/units/sizes.ts'
import { partId } from './problem.tsx'
import { Stock } from './stock.tsx'

type Capacity = RouteResponse<'capacityList'>['items'][number]

interface TypePickerProps {
  value: string
  onChange: (name: string) => void
  prices: Price[]
  capacities: Capacity[]
}

/** A card for each type, grouped by GPU model. Types that are out of stock stay visible. */
export function TypePicker({ value, onChange, prices, capacities }: TypePickerProps) {
  const offered = familyNames.filter((family) => capacities.some(({ type }) => type.startsWith(`${family}.`)))
  return (
    <fieldset id={partId('type')} className="flex flex-col gap-4">
      <legend className="mb-2 text-lg font-semibold">Type</legend>
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
      <div className="mb-1.5 flex flex-wrap items-baseline gap-x-2">
        <span className="font-medium">{families[family].model}</span>
        <span className="text-sm text-ink-muted">
          {count(families[family].gpuMemoryGb)} GB memory per GPU,{' '}
          {families[family].nvmeGb > 0 ? 'with local NVMe scratch' : 'no local disk'}
        </span>
      </div>
      <div className="grid grid-cols-[repeat(auto-fill,minmax(148px,1fr))] gap-2">
        {types.map((type) => {
          const price = prices.find(({ product_name }) => product_name === type.name)
          const stock = stockText(capacities.filter((item) => item.type === type.name))
          return (
            <label
              key={type.name}
              title={stock.detail}
              className="card relative flex cursor-pointer flex-col px-3 py-1.5 text-sm leading-[18px] hover:border-line-strong has-checked:border-accent has-checked:bg-accent-soft has-focus-visible:outline-2 has-focus-visible:outline-offset-1 has-focus-visible:outline-accent"
            >
              <input
                type="radio"
                name="vm-type"
                className="absolute opacity-0"
                checked={value === type.name}
                onChange={() => onChange(type.name)}
                aria-label={`${type.name}, ${type.cpuCores} cores, ${memoryText(type)}, ${usd(price?.usd)} per hour, ${stock.text}`}
              />
              <span className="text-base font-semibold">{type.name}</span>
              {/* Always two lines, so that the prices of all cards are on one line. */}
              <span className="figures text-ink-muted">{type.cpuCores} cores</span>
              <span className="figures text-ink-muted">{count(type.memoryGb)} GB RAM</span>
              <span className="figures font-medium">{price ? `${usd(price.usd)}/h` : 'no price set'}</span>
              <Stock text={stock.text} isEnough={stock.hasStock} />
            </label>
          )
        })}
      </div>
    </div>
  )
}

/** Returns the stock as text: "7 in us-east1-a", or "9 in 2 locations" with the locations in `detail`. */
function stockText(capacities: Capacity[]): { text: string; detail: string; hasStock: boolean } {
  const inStock = capacities.filter(({ quantity }) => quantity > 0)
  const sum = inStock.reduce((sum, { quantity }) => sum + quantity, 0)
  const where = inStock.length === 1 ? inStock[0]!.location : plural(inStock.length, 'location')
  return {
    text: sum > 0 ? `${count(sum)} in ${where}` : 'out of stock',
    detail: inStock.map(({ location, quantity }) => `${count(quantity)} in ${location}`).join(', '),
    hasStock: sum > 0,
  }
}

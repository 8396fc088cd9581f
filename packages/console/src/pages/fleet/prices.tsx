import { diskTypes, families, familyNames, type Price, vmTypes } from '@slipway/sdk'
import { useState } from 'react'
import { useAction } from '../../api/actions.ts'
import { client } from '../../api/client.ts'
import { read } from '../../api/read.ts'
import { useQuery } from '../../api/use-query.ts'
import { settingsPollMs } from '../../features/fleet/poll.ts'
import { FleetPage } from '../../features/page-tabs.tsx'
import { plural } from '../../lib/format.ts'
import { operatorCommands } from '../../lib/shell.ts'
import { Button } from '../../ui/button.tsx'
import { Confirm, submitProps } from '../../ui/dialog.tsx'
import { Loaded } from '../../ui/loaded.tsx'
import { Sentence } from '../../ui/no-break.tsx'

interface Product {
  name: string
  unit: Price['unit']
}

const unitOf = (name: string): string =>
  groups.find(({ products }) => products.some((product) => product.name === name))?.text ?? ''

const groups: { title: string; text: string; products: Product[] }[] = [
  ...familyNames.map((family) => ({
    title: families[family].model,
    text: 'per VM-hour',
    products: vmTypes
      .filter((type) => type.family === family)
      .map(({ name }) => ({ name, unit: 'vm_hour' as const })),
  })),
  {
    title: 'Disks',
    text: 'per GiB-hour',
    products: diskTypes.map((name) => ({ name, unit: 'gb_hour' as const })),
  },
  {
    title: 'Custom images and snapshots',
    text: 'per GiB-hour',
    products: [
      { name: 'custom-image', unit: 'gb_hour' },
      { name: 'snapshot', unit: 'gb_hour' },
    ],
  },
  {
    title: 'Reserved addresses',
    text: 'per hour without a running VM',
    products: [{ name: 'reserved-address', unit: 'address_hour' }],
  },
]
const products = groups.flatMap((group) => group.products)

/** New prices apply immediately; past usage keeps its price. */
export function Prices() {
  const prices = useQuery({ ...read('adminPriceList', {}), refetchInterval: settingsPollMs })
  const [values, setValues] = useState<Record<string, string>>({})
  const priceOf = (name: string) => prices.data?.items.find(({ product_name }) => product_name === name)?.usd
  const changed = products.filter(
    ({ name }) => values[name] !== undefined && Number(values[name]) !== priceOf(name),
  )
  const isValid = changed.every(({ name }) => /^\d+(\.\d{1,8})?$/.test(values[name] ?? ''))
  const problem = changed.length === 0 ? 'No changes yet' : isValid ? undefined : 'Enter amounts such as 1.45'
  const [isAsking, setAsking] = useState(false)
  const items = changed.map(({ name, unit }) => ({ product_name: name, unit, usd: Number(values[name]) }))
  const save = useAction({
    run: () => client.adminPriceSet({ items }),
    done: () => 'Prices changed',
    invalidates: ['adminPriceList', 'priceList'],
    showsErrors: true,
  })
  const finish = () => {
    setAsking(false)
    setValues({})
  }
  return (
    <FleetPage>
      <Loaded query={prices} rows={12}>
        {(_data) => (
          <>
            <div className="grid items-start gap-4 lg:grid-cols-2">
              {groups.map(({ title, text, products }) => (
                <section key={title} aria-label={title} className="card">
                  <h2 className="flex items-baseline justify-between gap-4 border-b border-line px-4 py-2 font-semibold">
                    {title}{' '}
                    <span className="text-right text-sm font-normal text-ink-muted">
                      USD <Sentence text={text} />
                    </span>
                  </h2>
                  <div className="py-1.5">
                    {products.map(({ name }) => (
                      <div key={name} className="flex h-10 items-center justify-between gap-3 px-4">
                        <span className="whitespace-nowrap">{name}</span>
                        <input
                          aria-label={`Price of ${name}, USD ${text}`}
                          inputMode="decimal"
                          placeholder="not set"
                          value={values[name] ?? shown(priceOf(name))}
                          onChange={(event) => setValues({ ...values, [name]: event.target.value })}
                          className={`figures h-8 w-28 rounded-md border bg-surface px-2.5 text-right ${changed.some((each) => each.name === name) ? 'border-accent' : 'border-line-strong'}`}
                        />
                      </div>
                    ))}
                  </div>
                </section>
              ))}
            </div>
            {/* The button stays visible while the page scrolls. */}
            <div className="card sticky bottom-0 flex flex-wrap items-center justify-end gap-x-4 gap-y-2 px-4 py-3">
              <p className="min-w-0 flex-1 text-sm text-ink-muted">
                {problem ?? `${plural(changed.length, 'price')} changed`}
              </p>
              <Button kind="primary" reason={problem} onClick={() => setAsking(true)}>
                Set prices
              </Button>
            </div>
          </>
        )}
      </Loaded>
      <Confirm
        isOpen={isAsking}
        onClose={() => setAsking(false)}
        title={`Set ${plural(changed.length, 'price')}`}
        action="Apply now"
        commands={operatorCommands({
          cli: `slipway admin price set ${items.map(({ product_name, usd }) => `${product_name}=${usd}`).join(' ')}`,
          method: 'PUT',
          path: '/prices',
          body: { items },
        })}
        {...submitProps(save, undefined, finish)}
      >
        <p>
          The new prices will apply to all organizations immediately, including running VMs. Past usage keeps
          its price.
        </p>
        <ul className="mt-2 text-ink">
          {changed.map(({ name }) => (
            <li key={name} className="flex justify-between gap-4">
              <span>{name}</span>
              <span className="figures text-right">
                {shown(priceOf(name)) || 'not set'} → {values[name]} USD <Sentence text={unitOf(name)} />
              </span>
            </li>
          ))}
        </ul>
      </Confirm>
    </FleetPage>
  )
}

/** Shows at least two decimals: 0.90, but also 0.00013. */
const shown = (usd: number | undefined): string =>
  usd === undefined ? '' : Number.isInteger(usd * 100) ? usd.toFixed(2) : String(usd)

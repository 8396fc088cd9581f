import { diskTypes, type Price, vmTypeNames } from '@slipway/sdk'
import { useState } from 'react'
import { useAction } from '../../api/actions.ts'
import { client } from '../../api/client.ts'
import { read } from '../../api/read.ts'
import { useQuery } from '../../api/use-query.ts'
import { Button } from '../../ui/button.tsx'
import { Loaded } from '../../ui/loaded.tsx'
import { FleetPage } from '../../ui/page-tabs.tsx'

const products: { name: string; unit: Price['unit']; words: string }[] = [
  ...vmTypeNames.map((name) => ({ name, unit: 'vm_hour' as const, words: 'per VM and hour' })),
  ...diskTypes.map((name) => ({ name, unit: 'gb_hour' as const, words: 'per GB and hour' })),
]

/** Prices are valid from the moment they are set; what ran before keeps its price. */
export function Prices() {
  const prices = useQuery(read('adminPriceList', {}))
  const [values, setValues] = useState<Record<string, string>>({})
  const priceOf = (name: string) => prices.data?.items.find(({ product_name }) => product_name === name)?.usd
  const changed = products.filter(
    ({ name }) => values[name] !== undefined && Number(values[name]) !== priceOf(name),
  )
  const isValid = changed.every(({ name }) => /^\d+(\.\d{1,8})?$/.test(values[name] ?? ''))
  const save = useAction({
    run: () =>
      client.adminPriceSet({
        items: changed.map(({ name, unit }) => ({ product_name: name, unit, usd: Number(values[name]) })),
      }),
    done: () => 'Set the prices, valid from now',
    touches: ['adminPriceList', 'priceList'],
  })
  return (
    <FleetPage
      actions={
        <Button
          kind="primary"
          isBusy={save.isPending}
          reason={
            changed.length === 0
              ? 'Nothing has been changed'
              : isValid
                ? undefined
                : 'Amounts such as 1.45 only'
          }
          onClick={() => save.mutate(undefined, { onSuccess: () => setValues({}) })}
        >
          Set prices
        </Button>
      }
    >
      <Loaded query={prices} rows={12}>
        {(_data) => (
          <div className="card grid gap-x-8 px-4 py-2 md:grid-cols-2">
            {products.map(({ name, words }) => (
              <div key={name} className="flex h-11 items-center gap-3">
                <span className="flex-1 whitespace-nowrap">{name}</span>
                <input
                  aria-label={`Price of ${name}, USD ${words}`}
                  inputMode="decimal"
                  placeholder="not set"
                  value={values[name] ?? priceOf(name)?.toString() ?? ''}
                  onChange={(event) => setValues({ ...values, [name]: event.target.value })}
                  className="figures h-8 w-24 rounded-md border border-line-strong bg-surface px-2.5 text-right"
                />
                <span className="w-36 text-sm text-ink-muted max-md:w-auto">
                  USD <span className="max-md:hidden">{words}</span>
                </span>
              </div>
            ))}
          </div>
        )}
      </Loaded>
    </FleetPage>
  )
}

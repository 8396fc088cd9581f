import type { UsageItem } from '@slipway/sdk'
import { useMemo } from 'react'
import { quantity, usd } from '../../lib/format.ts'
import { Section } from '../../ui/page.tsx'
import { Table } from '../../ui/table.tsx'

interface Total {
  key: string
  quantity: number
  unit: string
  usd: number
}

function totalsBy(items: UsageItem[], keyOf: (item: UsageItem) => string): Total[] {
  const totals = new Map<string, Total>()
  for (const item of items) {
    const key = keyOf(item)
    const total = totals.get(key) ?? { key, quantity: 0, unit: item.unit, usd: 0 }
    total.quantity += item.quantity
    total.usd += item.usd ?? 0
    totals.set(key, total)
  }
  return [...totals.values()].sort((a, b) => b.usd - a.usd)
}

export function Tables({
  items,
  projectOf,
  isWhole,
}: {
  items: UsageItem[]
  projectOf: (item: UsageItem) => string
  isWhole: boolean
}) {
  const byProduct = useMemo(() => totalsBy(items, (item) => item.product_name), [items])
  const byProject = useMemo(() => totalsBy(items, projectOf), [items, projectOf])
  if (items.length === 0)
    return <p className="text-ink-muted">No whole day of this month has been written yet.</p>
  return (
    <div className="grid grid-cols-1 items-start gap-6 lg:grid-cols-2">
      <Section title="By product">
        <Table
          label="By product"
          rows={byProduct}
          rowKey={(row) => row.key}
          columns={[
            { key: 'product', title: 'Product', width: 'minmax(120px, 1.4fr)', cell: (row) => row.key },
            {
              key: 'quantity',
              title: 'Quantity',
              width: 'minmax(130px, 1fr)',
              align: 'right',
              cell: (row) => quantity(row.quantity, row.unit),
            },
            { key: 'usd', title: 'Amount', width: '130px', align: 'right', cell: (row) => usd(row.usd) },
          ]}
        />
      </Section>
      {isWhole && (
        <Section title="By project">
          <Table
            label="By project"
            rows={byProject}
            rowKey={(row) => row.key}
            columns={[
              { key: 'project', title: 'Project', width: 'minmax(140px, 2fr)', cell: (row) => row.key },
              { key: 'usd', title: 'Amount', width: '130px', align: 'right', cell: (row) => usd(row.usd) },
            ]}
          />
        </Section>
      )}
    </div>
  )
}

import type { BillingInvoice } from '@slipway/contract'
import { isApiError } from '@slipway/sdk'
import { Link, useParams } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { readInvoice } from '../../api/billing-link.ts'
import { useQuery } from '../../api/use-query.ts'
import { PublicFrame } from '../../features/public-frame.tsx'
import { amount, money } from '../../lib/format.ts'
import { daysIn, monthText } from '../../lib/months.ts'
import { preciseQuantity } from '../../lib/units/quantity.ts'
import { Button, ButtonLink } from '../../ui/button.tsx'
import { Loaded } from '../../ui/loaded.tsx'
import { Facts, useTitle } from '../../ui/page.tsx'
import { StateBadge } from '../../ui/state.tsx'
import { Table } from '../../ui/table.tsx'

/** An invoice, opened from a billing link. The printed page has no header. */
export function InvoicePage() {
  const { token = '', invoiceId = '' } = useParams({ strict: false })
  const query = useQuery(readInvoice(token, invoiceId))
  useTitle(`Invoice ${query.data?.invoice.period_start.slice(0, 7) ?? ''} · Slipway`)
  if (isApiError(query.error) && query.error.message.startsWith('This link')) return <LinkEnded />
  return (
    <PublicFrame
      aside={
        <Link to="/billing/$token" params={{ token }} className="link">
          Back to billing
        </Link>
      }
    >
      <Loaded query={query}>{(data) => <Document {...data} />}</Loaded>
    </PublicFrame>
  )
}

function Document({ organization_name, project_names, issued_on, invoice }: BillingInvoice) {
  const month = invoice.period_start.slice(0, 7)
  const projects = [...new Set(invoice.lines.map(({ project_id }) => project_id))]
  return (
    <>
      <div className="flex flex-wrap items-center justify-between gap-2">
        <div className="flex flex-wrap items-center gap-3">
          <h1 className="text-xl font-semibold">Invoice, {monthText(month)}</h1>
          <StateBadge state={invoice.state === 'issued' ? 'due' : invoice.state} />
        </div>
        <span className="print:hidden">
          <Button onClick={() => window.print()}>Print</Button>
        </span>
      </div>
      <Facts
        items={[
          ['For', organization_name],
          ['Period', `${month}-01 to ${month}-${daysIn(month)}, UTC`],
          ['Issued', issued_on || 'not yet (the month has not ended)'],
          [
            'Number',
            <code key="number" className="mono break-all">
              {invoice.id}
            </code>,
          ],
        ]}
      />
      {projects.map((id) => (
        <ProjectLines
          key={id}
          name={project_names[id] ?? id}
          lines={invoice.lines.filter(({ project_id }) => project_id === id)}
          hasSubtotal={projects.length > 1}
        />
      ))}
      <div className="figures flex justify-between border-t border-line-strong pt-3 text-lg font-semibold">
        <span>Total for all projects</span>
        <span>{money(invoice.usd)}</span>
      </div>
      <p className="text-sm text-ink-muted print:hidden">
        Each line is rounded to the nearest cent.
        {invoice.state === 'open' &&
          ' The total can therefore differ by a few cents from the cost so far on other pages.'}
      </p>
    </>
  )
}

type Line = Pick<BillingInvoice['invoice']['lines'][number], 'product_name' | 'usd'> & { quantity: string }

interface ProjectLinesProps {
  name: string
  lines: BillingInvoice['invoice']['lines']
  /** False if the total of the invoice is the same amount. */
  hasSubtotal: boolean
}

function ProjectLines({ name, lines, hasSubtotal }: ProjectLinesProps) {
  const rows = lines.map(
    ({ product_name, quantity, unit, usd }): Line => ({
      product_name,
      quantity: preciseQuantity(quantity, unit),
      usd,
    }),
  )
  const subtotal = {
    product_name: 'Subtotal',
    quantity: '',
    usd: rows.reduce((sum, { usd }) => sum + usd, 0),
  }
  return (
    <section className="flex flex-col gap-2">
      <h2 className="font-semibold wrap-anywhere">{name}</h2>
      <Table
        label={`Products in ${name}`}
        rows={rows}
        foot={hasSubtotal ? [subtotal] : []}
        rowKey={({ product_name }) => product_name}
        columns={[
          {
            key: 'product',
            title: 'Product',
            width: 'minmax(140px, 1fr)',
            cell: ({ product_name }) => product_name,
          },
          {
            key: 'quantity',
            title: 'Quantity',
            width: 'minmax(180px, 220px)',
            align: 'right',
            cell: ({ quantity }) => quantity,
          },
          { key: 'usd', title: 'USD', width: '140px', align: 'right', cell: ({ usd }) => amount(usd) },
        ]}
      />
    </section>
  )
}

function Note({ title, children }: { title: string; children: ReactNode }) {
  useTitle(`${title} · Slipway`)
  return (
    <PublicFrame aside={null}>
      <h1 className="text-xl font-semibold">{title}</h1>
      <p className="max-w-2xl text-ink-muted">{children}</p>
      <div>
        {/* A full page load, so that the console reads its session again. */}
        <ButtonLink kind="primary" to="/" reloadDocument>
          Back to the console
        </ButtonLink>
      </div>
    </PublicFrame>
  )
}

export const LinkEnded = () => (
  <Note title="This link no longer works">
    A link to the billing dashboard works for 15 minutes. Get a new link in the console, or run{' '}
    <code className="mono">slipway billing</code>.
  </Note>
)

/** The payment provider sends the browser here, without the token. */
export const BillingReturned = () => (
  <Note title="Back from the payment provider">
    The change takes effect in a few moments. You can close this page.
  </Note>
)

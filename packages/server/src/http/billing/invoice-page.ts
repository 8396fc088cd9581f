import { centsToUsd, quantityHours } from '../../domain/money.ts'
import { addDays, addMonths, monthTitle } from '../../domain/months.ts'
import type { InvoiceRow } from '../../store/billing/invoices.ts'
import { invoiceState } from './dashboard-page.ts'
import { type Html, html, money, page, pageHeader } from './html.ts'

interface InvoiceView {
  base: string
  organizationName: string
  projectNames: Map<string, string>
  invoice: InvoiceRow
}

const units = {
  vm_hour: 'VM-hours',
  gb_hour: 'GiB-hours',
  gpu_hour: 'GPU-hours',
  address_hour: 'address-hours',
} as const
const cents = (text: string) => money(centsToUsd(BigInt(text)))

/** Printed without the page header, as a document. */
export function invoicePage({ base, organizationName, projectNames, invoice }: InvoiceView): string {
  const projects = [...new Set(invoice.lines.map((line) => line.project_id))]
  const table = (projectId: string): Html => html`<h2>${projectNames.get(projectId) ?? projectId}</h2>
<table><thead><tr><th>Product</th><th class="number">Quantity</th><th class="number">USD</th></tr></thead>
<tbody>${invoice.lines
    .filter((line) => line.project_id === projectId)
    .map(
      (line) =>
        html`<tr><td>${line.product_name}</td><td class="number">${money(quantityHours(BigInt(line.quantity_ms), 2))} ${units[line.unit]}</td><td class="number">${cents(line.usd_cents)}</td></tr>`,
    )}</tbody></table>`
  return page(
    `Invoice ${invoice.month.slice(0, 7)} · ${organizationName}`,
    html`${pageHeader(html`<a href="${base}">← Billing</a>`)}
<main class="invoice"><section>
<div class="heading"><h1>Invoice, ${monthTitle(invoice.month)}</h1>${invoiceState(invoice.state)}</div>
<dl>
<dt>For</dt><dd>${organizationName}</dd>
<dt>Period</dt><dd>${invoice.month} to ${addDays(addMonths(invoice.month, 1), -1)}, UTC</dd>
<dt>Issued</dt><dd>${invoice.issued_at ? invoice.issued_at.toISOString().slice(0, 10) : 'not yet, the month has not ended'}</dd>
<dt>Number</dt><dd><code>${invoice.id}</code></dd>
</dl>
${projects.map(table)}
<h2>Total</h2>
<table><tfoot><tr><th>All projects</th><td class="number">${cents(invoice.usd_cents)} USD</td></tr></tfoot></table>
<p class="muted screen">Amounts are rounded to cents once, in each line. Print this page to keep it as a document.</p>
</section></main>`,
  )
}

const notePage = (title: string, text: Html) =>
  page(
    'Billing',
    html`${pageHeader(html`<a href="/">← Console</a>`)}
<main class="invoice"><section><h1>${title}</h1><p class="muted">${text}</p></section></main>`,
  )

export const missingPage = () =>
  notePage(
    'This link no longer works',
    html`A link to the billing dashboard works for 15 minutes. An owner of the organization gets a new one from the console, or with <code>GET /v0.1/organizations/{organization_id}/billing</code>.`,
  )

export const returnedPage = () =>
  notePage(
    'Back from the payment provider',
    html`The change takes effect in a few moments. You can close this page.`,
  )

export const failedPage = (message: string) => notePage('The request failed', html`${message}`)

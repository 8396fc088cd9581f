import { testCards } from '../../domain/cards.ts'
import { sumUsd } from '../../domain/charges.ts'
import { centsToUsd, displayUsd } from '../../domain/money.ts'
import { addMonths, monthOf, monthTitle } from '../../domain/months.ts'
import type { InvoiceRow } from '../../store/billing/invoices.ts'
import type { PaymentMethodRow } from '../../store/billing/payments.ts'
import type { MonthRow } from '../../store/billing/usage-days.ts'
import type { OrganizationRow } from '../../store/identity/organizations.ts'
import type { ProjectRow } from '../../store/identity/projects.ts'
import { dailyChart, seriesOf } from './chart.ts'
import { type Html, html, money, page, pageHeader } from './html.ts'

export interface Dashboard {
  /** The path of this link; all other paths are below it. */
  base: string
  /** The console page that links to the dashboard. */
  consolePath: string
  minutesLeft: number
  today: string
  organization: OrganizationRow
  /** Set for the link of a project: shows its costs only, and can add a payment method but not replace one. */
  project: ProjectRow | null
  provider: 'builtin' | 'stripe'
  method: PaymentMethodRow | undefined
  running: { vms: number; disks: number }
  costs: { usd_per_hour: number; month_to_date_usd: number; forecast_usd: number }
  month: string
  rows: MonthRow[]
  invoices: InvoiceRow[]
  notice: keyof typeof notices | undefined
}

/** Results of forms. The URL has only the name, so that a link cannot put its own text on the page. */
export const notices = {
  saved: { tone: 'good', text: 'Payment method saved.' },
  removed: { tone: 'good', text: 'Payment method removed.' },
  unknown: {
    tone: 'bad',
    text: 'This number is not a test card. Real cards are not accepted: use a card listed below.',
  },
  declined: { tone: 'bad', text: 'The card was declined. Nothing was changed.' },
  expired: { tone: 'bad', text: 'The card has expired. Nothing was changed.' },
  'bad-expiry': { tone: 'bad', text: 'Enter the expiry as month and year, such as 11/29.' },
  active: {
    tone: 'bad',
    text: 'A payment method is already active. Only an owner of the organization can replace it.',
  },
  running: { tone: 'bad', text: 'The last payment method cannot be removed while VMs run or disks exist.' },
  unavailable: { tone: 'bad', text: 'The payment provider does not respond. Try again shortly.' },
} as const

/** Texts and colours match the console. */
const paymentBadges: Record<OrganizationRow['payment_state'], Badge> = {
  active: ['good', 'active'],
  never: ['off', 'no card yet'],
  removed: ['near', 'card removed'],
  declined: ['bad', 'card declined'],
}

type Badge = [tone: 'good' | 'busy' | 'near' | 'bad' | 'off', word: string]

const stateBadge = ([tone, word]: Badge) =>
  html`<span class="state ${tone}"><span class="mark" aria-hidden="true"></span>${word}</span>`

const gateTexts: Record<OrganizationRow['payment_state'], string | null> = {
  active: null,
  never: 'Add a payment method to use the API.',
  removed:
    'Nothing that costs money can be created or started until you add a payment method. Existing resources can be viewed, stopped and deleted.',
  declined:
    'The payment method was declined. Nothing that costs money can be created or started until it is replaced.',
}

export function dashboardPage(board: Dashboard): string {
  const { organization, project, notice, consolePath, minutesLeft } = board
  const result = notice && notices[notice]
  const gate = gateTexts[organization.payment_state]
  return page(
    `Billing · ${organization.name}`,
    html`${pageHeader(html`<a href="${consolePath}">← Console</a><span class="until">This link works for ${plural(minutesLeft, 'more minute')}</span>`)}
<main>
<h1 class="wide">${organization.name}${project ? ` / ${project.name}` : ''}</h1>
${result ? html`<p class="notice ${result.tone}" role="status">${result.text}</p>` : null}
${gate ? html`<p class="notice ${paymentBadges[organization.payment_state][0]}">${gate}</p>` : null}
${monthSection(board)}
${project ? additionSection(board) : methodSection(board)}
${chartSection(board)}
${project ? null : invoiceSection(board)}
</main>`,
  )
}

const usd = (value: number) => money(value.toFixed(2))
/** Small prices keep four decimals, as in the console. */
const hourly = (value: number) => money(value.toFixed(value !== 0 && value < 0.1 ? 4 : 2))

const monthSection = ({ costs, today }: Dashboard) => html`<section>
<h2>This month so far</h2>
<p class="figure">${usd(costs.month_to_date_usd)} <small>USD</small></p>
<dl><dt>Month</dt><dd>${monthTitle(monthOf(today))}</dd><dt>Costs now</dt><dd>${hourly(costs.usd_per_hour)} USD/h</dd><dt>This month, forecast</dt><dd>${usd(costs.forecast_usd)} USD</dd></dl>
</section>`

function methodSection(board: Dashboard): Html {
  const { method, organization, provider, base } = board
  return html`<section>
<div class="heading"><h2>Payment method</h2>${stateBadge(paymentBadges[organization.payment_state])}</div>
${method ? html`<div class="card"><span>${method.brand} ending in ${method.last4}</span><span class="muted">${String(method.expires_month).padStart(2, '0')}/${method.expires_year}</span></div>` : html`<p class="muted">No payment method.</p>`}
${method ? html`<form id="remove" method="post" action="${base}/card/remove"></form>` : null}
${provider === 'stripe' ? stripeForm(board) : cardForm(board)}
${provider === 'builtin' ? testCardList(method !== undefined) : null}
</section>`
}

/** A project's key does not see the existing payment method. */
function additionSection(board: Dashboard): Html {
  const form = board.provider === 'stripe' ? stripeForm : cardForm
  return html`<section>
<div class="heading"><h2>Payment method</h2>${stateBadge(paymentBadges[board.organization.payment_state])}</div>
${
  board.organization.payment_state === 'active'
    ? html`<p class="muted">Only an owner of the organization can see and replace it.</p>`
    : html`${form({ ...board, method: undefined })}${board.provider === 'builtin' ? testCardList(false) : null}`
}
</section>`
}

const cardForm = (
  board: Dashboard,
) => html`<form method="post" action="${board.base}/card" autocomplete="off">
<label>Test card number<input name="number" inputmode="numeric" required maxlength="23" placeholder="4242 4242 4242 4242"></label>
<label>Expiry<input name="expiry" required maxlength="9" placeholder="MM/YY"></label>
<div class="actions"><button type="submit">${board.method ? 'Replace card' : 'Add card'}</button>${removeButton(board)}</div>
</form>`

const stripeForm = (board: Dashboard) => html`<form method="post" action="${board.base}/provider">
<div class="actions"><button type="submit">${board.method ? 'Replace at Stripe' : 'Add at Stripe'}</button>${removeButton(board)}</div>
</form>`

function removeButton({ method, running: { vms, disks } }: Dashboard): Html | null {
  if (!method) return null
  const isBlocked = vms + disks > 0
  return html`<button class="quiet" type="submit" form="remove" formnovalidate${isBlocked ? html` disabled` : null}>Remove</button>
${isBlocked ? html`<span class="muted">Cannot be removed: ${plural(vms, 'VM')} not stopped, ${plural(disks, 'disk')}.</span>` : null}`
}

const plural = (count: number, word: string) => `${count} ${word}${count === 1 ? '' : 's'}`

const testCardList = (isFolded: boolean) => html`<details${isFolded ? null : html` open`}>
<summary>Test cards (no real payments)</summary>
<table><tbody>${testCards.map(({ number, meaning }) => html`<tr><td><code>${number.replace(/(\d{4})(?=\d)/g, '$1 ')}</code></td><td>${meaning}</td></tr>`)}</tbody></table>
<p class="muted">Use any expiry in the future; a card stops working after its expiry month. Other numbers are refused and never stored.</p>
</details>`

function chartSection({ base, month, rows, today }: Dashboard): Html {
  const isCurrent = month === monthOf(today)
  const link = (to: string, text: string) => html`<a href="${base}?month=${to.slice(0, 7)}">${text}</a>`
  const series = seriesOf(rows)
  return html`<section class="wide">
<div class="heading"><h2>Daily cost in ${monthTitle(month)}</h2><nav aria-label="Month">${link(addMonths(month, -1), `← ${monthTitle(addMonths(month, -1))}`)}${isCurrent ? null : link(addMonths(month, 1), `${monthTitle(addMonths(month, 1))} →`)}</nav></div>
${
  series.length === 0
    ? html`<p class="muted">No usage in this month.</p>`
    : html`${dailyChart(rows, month)}
<table><thead><tr><th>Product</th><th class="number">USD</th></tr></thead>
<tbody>${series.map(({ product_name, usd, colour }) => html`<tr><td><svg class="swatch" viewBox="0 0 10 10" aria-hidden="true"><rect class="${colour}" width="10" height="10" rx="2"/></svg>${product_name}</td><td class="number">${money(usd)}</td></tr>`)}</tbody>
<tfoot><tr><th>Total</th><td class="number">${money(displayUsd(sumUsd(rows), 2))}</td></tr></tfoot></table>`
}
</section>`
}

const invoiceBadges: Record<InvoiceRow['state'], Badge> = {
  open: ['busy', 'open'],
  issued: ['near', 'due'],
  paid: ['good', 'paid'],
}

export const invoiceState = (state: InvoiceRow['state']): Html => stateBadge(invoiceBadges[state])

const invoiceSection = ({ base, invoices }: Dashboard) => html`<section class="wide">
<h2>Invoices</h2>
${
  invoices.length === 0
    ? html`<p class="muted">The first invoice is issued on the first day of the month after the first usage.</p>`
    : html`<table><thead><tr><th>Month</th><th>State</th><th class="number">USD</th><th class="number optional">Lines</th><th class="number"><span class="unseen">Document</span></th></tr></thead>
<tbody>${invoices.map(
        (invoice) =>
          html`<tr><td>${monthTitle(invoice.month)}</td><td>${invoiceState(invoice.state)}</td><td class="number">${money(centsToUsd(BigInt(invoice.usd_cents)))}</td><td class="number optional">${invoice.lines.length}</td><td class="number"><a href="${base}/invoices/${invoice.id}">View</a></td></tr>`,
      )}</tbody></table>`
}
</section>`

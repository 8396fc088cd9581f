import type Stripe from 'stripe'
import { chargeLines, totalCents } from '../domain/charges.ts'
import { monthOf } from '../domain/months.ts'
import type { Tx } from '../postgres/database.ts'
import type { Services } from '../services.ts'
import {
  closeMeterReport,
  insertMeterReport,
  type MeterReportRow,
  markMeterReportTried,
  postponeMeterReport,
  takeMeterReports,
} from '../store/billing/meter-reports.ts'
import { listMonth, listProjectIds } from '../store/billing/usage-days.ts'
import { emitBilling, systemOf } from './payments.ts'
import { stripeOf } from './stripe-client.ts'
import { ensureCustomer } from './stripe-customers.ts'

/**
 * Records the cents that a day adds to the month's invoice. Invoice lines only grow, so a day never adds a
 * negative amount, and the days of a month add up exactly to its invoice.
 */
export async function recordMeterReport(tx: Tx, organizationId: string, day: string): Promise<void> {
  const rows = await listMonth(tx, await listProjectIds(tx, organizationId), monthOf(day))
  const centsOf = (isCounted: (rowDay: string) => boolean) =>
    totalCents(chargeLines(rows.filter((row) => isCounted(row.day))))
  const cents = centsOf((rowDay) => rowDay <= day) - centsOf((rowDay) => rowDay < day)
  if (cents > 0n) await insertMeterReport(tx, organizationId, day, String(cents))
}

const meterEventName = 'slipway_usage_cents'
const reportsAtOnce = 50
/**
 * The provider remembers an identifier for at least a day. One hour is subtracted, because clocks differ.
 */
const rememberedMs = 23 * 3_600_000
/** The provider rejects events that are older than 35 days. One day is subtracted as a margin. */
const acceptedMs = 34 * 86_400_000

/**
 * Sends due reports, each at least once. Failed reports are retried; disputed ones are reported to operators.
 */
export async function sendMeterReports(services: Services): Promise<void> {
  if (services.config.billing.provider !== 'stripe') return
  const stripe = await stripeOf(services)
  for (;;) {
    const due = await takeMeterReports(services.database, reportsAtOnce)
    if (due.length === 0) return
    for (const report of due)
      await send(services, stripe, report).catch(async (error) => {
        services.log.warn(
          { err: error, organization: report.organization_id, day: report.day },
          'usage not sent to the payment provider; will retry',
        )
        await postponeMeterReport(services.database, report)
      })
  }
}

async function send(services: Services, stripe: Stripe, report: MeterReportRow): Promise<void> {
  const { database } = services
  const customer = await ensureCustomer(services, report.organization_id)
  const meter = await ensureMeter(stripe)
  const wasTried = report.tried_ago_ms !== null
  if (wasTried && report.tried_ago_ms! > rememberedMs) {
    // The identifier may have expired, so only the provider's own count shows whether the report arrived.
    const counted = await countedCents(stripe, meter, customer, report.day)
    if (counted === Number(report.usd_cents)) return void (await closeMeterReport(database, report, 'sent'))
    if (counted !== 0) return dispute(services, report, `the provider has counted ${counted} cents`)
  }
  if (report.day_age_ms > acceptedMs) return dispute(services, report, 'the day is too old for the provider')
  if (!wasTried) await markMeterReportTried(database, report)
  try {
    await stripe.billing.meterEvents.create({
      event_name: meterEventName,
      identifier: `slipway-${report.organization_id}-${report.day}`,
      timestamp: Date.parse(`${report.day}T23:59:59Z`) / 1000,
      payload: { stripe_customer_id: customer, value: report.usd_cents },
    })
  } catch (error) {
    // The provider also rejects an identifier that it has already counted.
    const isRefused = (error as Partial<Stripe.errors.StripeError>).type === 'StripeInvalidRequestError'
    const hasArrived =
      wasTried &&
      isRefused &&
      (await countedCents(stripe, meter, customer, report.day)) === Number(report.usd_cents)
    if (!hasArrived) throw error
  }
  await closeMeterReport(database, report, 'sent')
}

/**
 * One meter is used for all customers. The sum of a customer's values over a month is the month's invoice in
 * cents.
 */
async function ensureMeter(stripe: Stripe): Promise<string> {
  for await (const meter of stripe.billing.meters.list({ status: 'active', limit: 100 }))
    if (meter.event_name === meterEventName) return meter.id
  const meter = await stripe.billing.meters.create({
    display_name: 'Slipway usage, in cents',
    event_name: meterEventName,
    default_aggregation: { formula: 'sum' },
  })
  return meter.id
}

async function countedCents(stripe: Stripe, meter: string, customer: string, day: string): Promise<number> {
  const start = Date.parse(`${day}T00:00:00Z`) / 1000
  const { data } = await stripe.billing.meters.listEventSummaries(meter, {
    customer,
    start_time: start,
    end_time: start + 86_400,
  })
  return data.reduce((sum, { aggregated_value }) => sum + aggregated_value, 0)
}

async function dispute(services: Services, report: MeterReportRow, reason: string): Promise<void> {
  const { organization_id, day, usd_cents } = report
  services.log.error(
    { organization: organization_id, day, reason },
    'usage report disputed and not sent again',
  )
  await services.database.transaction(async (tx) => {
    if (await closeMeterReport(tx, report, 'disputed'))
      await emitBilling(tx, systemOf(organization_id), 'billing.meter_disputed', {
        day,
        usd_cents: Number(usd_cents),
        reason,
      })
  })
}

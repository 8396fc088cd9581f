import { sumUsd, usdByProduct, usdNumber } from '../../domain/charges.ts'
import { displayUsd } from '../../domain/money.ts'
import { addDays, addMonths, daysBetween } from '../../domain/months.ts'
import type { MonthRow } from '../../store/billing/usage-days.ts'
import { type Html, html, money } from './html.ts'

const width = 1000
const height = 220
const left = 56
const top = 12
const bottom = 24
const mostSeries = 8

/** Returns the products of a month, most expensive first, with colours. Products beyond the palette share the last colour. */
export const seriesOf = (rows: MonthRow[]) =>
  usdByProduct(rows).map(({ product_name, usd }, index) => ({
    product_name,
    usd: displayUsd(usd, 2),
    colour: `s${Math.min(index, mostSeries - 1)}`,
  }))

/** Draws stacked bars, one per day, as SVG, so that the page needs no script. */
export function dailyChart(rows: MonthRow[], month: string): Html {
  const series = seriesOf(rows)
  const days = daysBetween(month, addMonths(month, 1))
  const step = (width - left) / days
  const bars = Array.from({ length: days }, (_, index) => {
    const day = addDays(month, index)
    const today = rows.filter((row) => row.day === day)
    return { day, index, rows: today, usd: usdNumber(sumUsd(today)) }
  })
  const ceiling = niceCeiling(Math.max(...bars.map(({ usd }) => usd)))
  const y = (usd: number) => height - bottom - (usd / ceiling) * (height - top - bottom)
  const number = (value: number) => value.toFixed(2)

  const drawn = bars.map(({ day, index, rows, usd }) => {
    let base = 0
    const parts = series.map(({ product_name, colour }) => {
      const part = usdNumber(sumUsd(rows.filter((row) => row.product_name === product_name)))
      if (part === 0) return null
      base += part
      return html`<rect class="${colour}" x="${number(left + index * step + step * 0.12)}" y="${number(y(base))}" width="${number(step * 0.76)}" height="${number(y(base - part) - y(base))}"/>`
    })
    const cost = usd === 0 ? 'nothing' : `${money(usd.toFixed(2))} USD`
    return html`<g><title>${day}: ${cost}</title>${parts}</g>`
  })
  const lines = [0, 0.5, 1].map((share) => {
    const at = number(y(ceiling * share))
    return html`<line x1="${left}" x2="${width}" y1="${at}" y2="${at}"/><text x="${left - 8}" y="${number(y(ceiling * share) + 4)}" text-anchor="end">${money(axisText(ceiling * share))}</text>`
  })
  const labels = bars
    .filter(({ index }) => index === 0 || (index + 1) % 5 === 0)
    .map(
      ({ index }) =>
        html`<text x="${number(left + (index + 0.5) * step)}" y="${height - 6}" text-anchor="middle">${index + 1}</text>`,
    )
  return html`<div class="chart" tabindex="0" role="group" aria-label="Daily costs, chart"><svg viewBox="0 0 ${width} ${height}" role="img" aria-label="Costs of each day by product, in USD">${lines}${drawn}${labels}</svg></div>`
}

/** Returns a round number at or above the value. */
function niceCeiling(value: number): number {
  if (value <= 0) return 1
  const power = 10 ** Math.floor(Math.log10(value))
  return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].map((factor) => factor * power).find((nice) => nice >= value) ?? value
}

const axisText = (value: number) => String(Number(value.toPrecision(3)))

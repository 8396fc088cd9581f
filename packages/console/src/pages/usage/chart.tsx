import type { UsageItem } from '@slipway/sdk'
import { Fragment, useEffect, useMemo, useRef, useState } from 'react'
import uPlot from 'uplot'
import { ticksFor } from '../../lib/axis.ts'
import { money, usd } from '../../lib/format.ts'
import { monthText } from '../../lib/months.ts'
import { useTheme } from '../../lib/theme.ts'
import { drawPlot, seriesColor, themeColor } from '../../ui/plot.ts'
import { unitemizedSums } from './grouping.ts'
import { budgetLine, forecastBars, stackByDay, type UnitemizedDays, unitemizedBars } from './stack.ts'

interface ChartProps {
  items: UsageItem[]
  groupOf: (item: UsageItem) => string
  by: string
  month: string
  days: number
  /** The days that are not itemized yet; null for past months. */
  unitemized: UnitemizedDays | null
  /** True if the table below the chart already itemizes these days. */
  isItemizedInTable: boolean
  /** The forecast of the current month, drawn as outlined bars for today and the following days. */
  forecastUsd: number | null
  /** The budget of the month; its daily share is drawn as a line. */
  budgetUsd: number | null
}

const heightPx = 240

/**
 * Draws a stacked bar for each day, and the forecast as an outline. The text above describes the day under
 * the pointer.
 */
export default function Chart({
  items,
  groupOf,
  by,
  month,
  days,
  unitemized,
  isItemizedInTable,
  forecastUsd,
  budgetUsd,
}: ChartProps) {
  const frame = useRef<HTMLDivElement>(null)
  const isDark = useTheme() === 'dark'
  const [day, setDay] = useState<number | null>(null)
  const { groups, stacks, totals } = useMemo(() => stackByDay(items, groupOf, days), [items, groupOf, days])
  const forecast = useMemo(
    () => forecastBars(totals, unitemized, forecastUsd),
    [totals, unitemized, forecastUsd],
  )
  const plain = useMemo(() => unitemizedBars(days, unitemized), [days, unitemized])
  const budget = useMemo(
    () => budgetLine(budgetUsd, days, [...totals, ...plain, ...forecast]),
    [budgetUsd, days, totals, plain, forecast],
  )
  const ticks = useMemo(
    () => ticksFor(Math.max(...[...totals, ...plain, ...forecast, budget].map((usd) => usd ?? 0))),
    [totals, plain, forecast, budget],
  )

  useEffect(() => {
    const element = frame.current
    if (!element) return
    const faint = { stroke: themeColor('ink-muted'), fill: themeColor('sunken') }
    const bars = uPlot.paths.bars!({ size: [0.7, 40], radius: 0.06 })
    const top = ticks.at(-1)!
    // Draw at least two pixels, so that the first cents of a day are visible.
    const shownPlain = plain.map((usd) => usd && Math.max(usd, top / 90))
    // Draw the tallest stack first, so that each shorter one covers its lower part.
    const layers = stacks.map((values, index) => ({ values, index })).reverse()
    return drawPlot(
      element,
      {
        heightPx,
        onPoint: setDay,
        scales: {
          x: { time: false, range: [0.4, days + 0.6] },
          y: { range: [0, top] },
        },
        axes: [
          { values: (_chart, ticks) => ticks.map((tick) => (Number.isInteger(tick) ? String(tick) : '')) },
          { unit: 'USD', splits: ticks },
        ],
        series: [
          {},
          { paths: bars, ...faint, width: 1, points: { show: false } },
          { paths: bars, fill: themeColor('ink-muted'), width: 0, points: { show: false } },
          ...layers.map(({ index }) => ({
            paths: bars,
            fill: seriesColor(index, isDark),
            width: 0,
            points: { show: false },
          })),
          { stroke: themeColor('amber'), width: 2, dash: [6, 4], points: { show: false } },
        ],
      },
      [
        Array.from({ length: days }, (_, index) => index + 1),
        forecast,
        shownPlain,
        ...layers.map(({ values }) => values),
        Array.from({ length: days }, () => budget),
      ],
    )
  }, [stacks, plain, forecast, budget, ticks, days, isDark])

  const all = totals.reduce((sum, value) => sum + value, 0)
  const title = `Daily cost in ${monthText(month)} by ${by}`
  const text =
    groups.length === 0
      ? `No usage in ${monthText(month)} yet`
      : `${title}: ${usd(all)} in total, highest on day ${totals.indexOf(Math.max(...totals)) + 1}`
  return (
    <figure>
      <p className="figures mb-2 truncate text-sm text-ink-muted">
        {day === null ? title : readOut({ day, month, totals, plain, forecast, today: unitemized?.today })}
      </p>
      {/* The plot is resized only after the page. Hide its overflow until then. */}
      <div ref={frame} role="img" aria-label={text} className="h-60 overflow-hidden" />
      <figcaption className="mt-2 flex flex-wrap gap-x-4 gap-y-1 text-sm text-ink-muted">
        {groups.map((group, index) => (
          <span key={group} className="inline-flex min-w-0 items-center gap-1.5">
            <span
              className="size-2.5 shrink-0 rounded-[2px]"
              style={{ background: seriesColor(index, isDark) }}
            />
            <span className="min-w-0 break-all">{group}</span>
            {day !== null && (
              <span className="figures whitespace-nowrap text-ink">{money(partOf(stacks, index, day))}</span>
            )}
          </span>
        ))}
        {unitemized && (
          <span className="inline-flex items-baseline gap-1.5">
            <span className="size-2.5 shrink-0 rounded-[2px] bg-ink-muted" />
            <span>
              {unitemizedSums(month, unitemized).map(({ text, usd }) => (
                <Fragment key={text}>
                  {text} <span className="figures whitespace-nowrap text-ink">{money(usd)}</span>,{' '}
                </Fragment>
              ))}
              {isItemizedInTable ? `by ${by} after midnight UTC` : 'not yet itemized'}
            </span>
          </span>
        )}
        {forecastUsd !== null && (
          <span className="inline-flex items-center gap-1.5">
            <span className="size-2.5 rounded-[2px] border border-ink-muted bg-sunken" />
            forecast
          </span>
        )}
        {budgetUsd !== null && (
          <span className="inline-flex items-center gap-1.5">
            <span className="w-3 border-t-2 border-dashed border-amber" />
            budget {money(budgetUsd)}, daily pace {money(budgetUsd / days)}
          </span>
        )}
      </figcaption>
    </figure>
  )
}

const partOf = (stacks: number[][], index: number, day: number): number =>
  (stacks[index]?.[day] ?? 0) - (stacks[index - 1]?.[day] ?? 0)

interface ReadOut {
  day: number
  month: string
  totals: number[]
  /** The bars of the days that are not itemized. */
  plain: (number | null)[]
  forecast: (number | null)[]
  today: number | undefined
}

function readOut({ day, month, totals, plain, forecast, today }: ReadOut): string {
  const date = `${month}-${String(day + 1).padStart(2, '0')} UTC`
  const unitemized = plain[day] ?? null
  const expected = forecast[day] ?? null
  if (unitemized !== null && day + 1 === today)
    return `${date}: ${money(unitemized)} so far, forecast ${money(expected ?? unitemized)}`
  if (unitemized !== null) return `${date}: about ${money(unitemized)}, not yet itemized`
  return `${date}: ${expected === null ? money(totals[day] ?? 0) : `forecast ${money(expected)}`}`
}

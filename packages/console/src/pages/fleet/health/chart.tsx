import { useEffect, useRef, useState } from 'react'
import uPlot from 'uplot'
import { plural } from '../../../lib/format.ts'
import { useTheme } from '../../../lib/theme.ts'
import { drawPlot, seriesColor } from '../../../ui/plot.ts'
import { type FaultBars, shortDate } from './bars.ts'

const heightPx = 200

/** Draws a stacked bar for each day. The text above describes the day under the pointer. */
export default function FaultChart({ bars, dates }: { bars: FaultBars; dates: string[] }) {
  const frame = useRef<HTMLDivElement>(null)
  const isDark = useTheme() === 'dark'
  const [day, setDay] = useState<number | null>(null)
  const { groups, stacks, totals } = bars
  useEffect(() => {
    const element = frame.current
    if (!element) return
    const paths = uPlot.paths.bars!({ size: [0.7, 40], radius: 0.06 })
    // Draw the tallest stack first, so that each shorter one covers its lower part.
    const layers = stacks.map((values, index) => ({ values, index })).reverse()
    return drawPlot(
      element,
      {
        heightPx,
        onPoint: setDay,
        scales: {
          x: { time: false, range: [-0.6, dates.length - 0.4] },
          y: { range: [0, Math.max(...totals, 4) * 1.1] },
        },
        axes: [
          {
            space: 70,
            values: (_chart, ticks) => ticks.map((tick) => (dates[tick] ? shortDate(dates[tick]) : '')),
          },
          { unit: '', incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000] },
        ],
        series: [
          {},
          ...layers.map(({ index }) => ({
            paths,
            fill: seriesColor(index, isDark),
            width: 0,
            points: { show: false },
          })),
        ],
      },
      [dates.map((_, index) => index), ...layers.map(({ values }) => values)],
    )
  }, [stacks, totals, dates, isDark])
  return (
    <figure className="card p-4">
      <p className="figures mb-2 truncate text-sm text-ink-muted">
        {day === null ? 'Faults per day (UTC)' : `${dates[day]}: ${plural(totals[day] ?? 0, 'fault')}`}
      </p>
      {/* The plot is resized only after the page. Hide its overflow until then. */}
      <div ref={frame} role="img" aria-label={summaryOf(bars, dates)} className="h-50 overflow-hidden" />
      <figcaption className="mt-2 flex flex-wrap gap-x-4 gap-y-1 text-sm text-ink-muted">
        {groups.map(({ key, name }, index) => (
          <span key={key} className="inline-flex min-w-0 items-center gap-1.5">
            <span
              className="size-2.5 shrink-0 rounded-[2px]"
              style={{ background: seriesColor(index, isDark) }}
            />
            <span className="min-w-0 break-all">{name}</span>
            {day !== null && (
              <span className="figures text-ink">
                {(stacks[index]?.[day] ?? 0) - (stacks[index - 1]?.[day] ?? 0)}
              </span>
            )}
          </span>
        ))}
      </figcaption>
    </figure>
  )
}

/** The chart in words, for screen readers. */
function summaryOf({ totals }: FaultBars, dates: string[]): string {
  const all = totals.reduce((sum, count) => sum + count, 0)
  const most = Math.max(...totals)
  return `GPU faults per day: ${all} in ${plural(dates.length, 'day')}, most on ${dates[totals.indexOf(most)]} (${most})`
}

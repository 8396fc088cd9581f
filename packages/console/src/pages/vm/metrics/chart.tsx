import { useEffect, useMemo, useRef, useState } from 'react'
import { ticksFor } from '../../../lib/axis.ts'
import { localDate } from '../../../lib/format.ts'
import { useTheme } from '../../../lib/theme.ts'
import { drawPlot, seriesColor } from '../../../ui/plot.ts'
import { type ChartLines, valueText } from './charts.ts'

const heightPx = 180
const timeText = (seconds: number) => localDate(new Date(seconds * 1000).toISOString())

const hours = new Intl.DateTimeFormat(undefined, { hour: 'numeric', minute: '2-digit' })
const days = new Intl.DateTimeFormat(undefined, { month: 'short', day: 'numeric' })
const dayS = 86_400

/** Ticks show times, or dates if the chart covers more than two days. */
const tickTextFor = (times: number[]) => (tick: number) =>
  (times.at(-1)! - times[0]! > 2 * dayS ? days : hours).format(tick * 1000)

/**
 * Draws lines over time, with gaps where there is no value. The text above describes the time under the
 * pointer.
 */
export default function Chart({ chart }: { chart: ChartLines }) {
  const frame = useRef<HTMLDivElement>(null)
  const isDark = useTheme() === 'dark'
  const [point, setPoint] = useState<number | null>(null)
  const { title, unit, top, times, lines } = chart
  const ticks = useMemo(
    () =>
      ticksFor(
        Math.max(top ?? 0, ...lines.flatMap(({ values }) => values.map((value) => value ?? 0))),
        unit === 'cores',
      ),
    [top, lines, unit],
  )
  useEffect(() => {
    const element = frame.current
    if (!element) return
    return drawPlot(
      element,
      {
        heightPx,
        onPoint: setPoint,
        scales: {
          // Show the whole range, even if the first values are missing.
          x: { time: true, range: [times[0]!, times.at(-1)!] },
          // A line along the highest tick is not cut.
          y: { range: [0, ticks.at(-1)! * 1.01] },
        },
        axes: [
          { space: 70, values: (_chart, ticks) => ticks.map(tickTextFor(times)) },
          {
            unit,
            splits: ticks,
            ...(unit === 'cores' && {
              values: (_chart: unknown, ticks: number[]) => ticks.map((tick) => valueText(tick, unit)),
            }),
          },
        ],
        series: [
          {},
          ...lines.map((_, index) => ({
            stroke: seriesColor(index, isDark),
            width: 1.5,
            // A line needs two points; draw a value between two gaps as a dot.
            points: {
              size: 4,
              filter: (_chart: unknown, at: number, areShown: boolean) =>
                areShown ? null : isolatedIndexes(lines[at - 1]),
            },
          })),
        ],
      },
      [times, ...lines.map(({ values }) => values)],
    )
  }, [times, lines, unit, ticks, isDark])
  const shownAt = point ?? lastKnown(chart)
  return (
    <figure className="card min-w-0 p-4">
      <p className="mb-2 flex items-baseline justify-between gap-4">
        <span className="font-medium">{title}</span>
        <span className="figures truncate text-sm text-ink-muted">
          {shownAt === null ? '' : timeText(times[shownAt]!)}
        </span>
      </p>
      {/* The plot is resized only after the page. Hide its overflow until then. */}
      {lastKnown(chart) === null ? (
        <p className="flex h-45 items-center justify-center text-ink-muted">No values in this time range</p>
      ) : (
        <div ref={frame} role="img" aria-label={summaryOf(chart)} className="h-45 overflow-hidden" />
      )}
      <figcaption className="mt-2 flex flex-wrap gap-x-4 gap-y-1 text-sm text-ink-muted">
        {lines.map(({ label, values }, index) => (
          <span key={label} className="inline-flex items-center gap-1.5">
            <span
              className="size-2.5 shrink-0 rounded-[2px]"
              style={{ background: seriesColor(index, isDark) }}
            />
            {label}
            <span className="figures whitespace-nowrap text-ink">
              {valueText(shownAt === null ? null : values[shownAt], unit)}
            </span>
          </span>
        ))}
      </figcaption>
    </figure>
  )
}

/** Returns the indexes of values between two gaps. */
function isolatedIndexes(line: ChartLines['lines'][number] | undefined): number[] {
  const values = line?.values ?? []
  const isKnown = (at: number) => (values[at] ?? null) !== null
  return values.flatMap((_, at) => (isKnown(at) && !isKnown(at - 1) && !isKnown(at + 1) ? at : []))
}

/** Returns the index of the last time at which a line has a value; null if there is none. */
function lastKnown({ times, lines }: ChartLines): number | null {
  const index = times.findLastIndex((_, at) => lines.some(({ values }) => (values[at] ?? null) !== null))
  return index < 0 ? null : index
}

/** The chart in words, for screen readers. */
function summaryOf({ title, unit, lines }: ChartLines): string {
  const parts = lines.map(({ label, values }) => {
    const known = values.filter((value) => value !== null)
    return known.length === 0
      ? `${label}: no values`
      : `${label}: latest ${valueText(known.at(-1), unit)}, highest ${valueText(Math.max(...known), unit)}`
  })
  return `${title} over time. ${parts.join('; ')}`
}

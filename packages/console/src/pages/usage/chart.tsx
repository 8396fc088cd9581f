import type { UsageItem } from '@slipway/sdk'
import { useEffect, useMemo, useRef } from 'react'
import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import { usd } from '../../lib/format.ts'
import { useTheme } from '../../lib/theme.ts'

interface ChartProps {
  items: UsageItem[]
  month: string
  days: number
  /** Of the running month, to be drawn as outlined bars over the days to come. */
  forecastUsd: number | null
}

const heightPx = 256
/** Told apart by lightness as well as hue, for eyes that do not see all hues. */
const hues = [180, 250, 75, 320, 150, 27, 285, 110]
const colourOf = (index: number, isDark: boolean) =>
  `oklch(${(isDark ? 0.76 : 0.62) - (index % 3) * 0.07} 0.11 ${hues[index % hues.length]})`

/** Stacked bars, a day each, by product; the forecast as an outline. */
export default function Chart(props: ChartProps) {
  const frame = useRef<HTMLDivElement>(null)
  const isDark = useTheme() === 'dark'
  const { products, stacks, totals } = useMemo(() => stack(props), [props])
  const forecast = useMemo(() => forecastBars(props, totals), [props, totals])

  useEffect(() => {
    const element = frame.current
    if (!element) return
    const style = getComputedStyle(document.documentElement)
    const line = style.getPropertyValue('--line')
    const ink = style.getPropertyValue('--ink-muted')
    const bars = uPlot.paths.bars!({ size: [0.7, 40], radius: 0.06 })
    const days = Array.from({ length: props.days }, (_, index) => index + 1)
    const font = '12px "Inter Variable", sans-serif'
    // The tallest stack is drawn first, so that each shorter one covers its lower part.
    const layers = stacks.map((values, index) => ({ values, index })).reverse()
    const chart = new uPlot(
      {
        width: element.clientWidth,
        height: heightPx,
        legend: { show: false },
        cursor: { show: false },
        scales: {
          x: { time: false, range: [0.4, props.days + 0.6] },
          y: { range: (_chart, _min, max) => [0, max > 0 ? max * 1.08 : 1] },
        },
        axes: [
          {
            stroke: ink,
            font,
            grid: { show: false },
            ticks: { show: false },
            values: (_chart, ticks) => ticks.map((tick) => (Number.isInteger(tick) ? String(tick) : '')),
          },
          {
            stroke: ink,
            font,
            size: 64,
            grid: { stroke: line, width: 1 },
            ticks: { show: false },
            values: (_chart, ticks) => ticks.map((tick) => `${tick} USD`),
          },
        ],
        series: [
          {},
          { paths: bars, stroke: ink, width: 1, points: { show: false } },
          ...layers.map(({ index }) => ({
            paths: bars,
            fill: colourOf(index, isDark),
            width: 0,
            points: { show: false },
          })),
        ],
      },
      [days, forecast, ...layers.map(({ values }) => values)],
      element,
    )
    const observer = new ResizeObserver(() => chart.setSize({ width: element.clientWidth, height: heightPx }))
    observer.observe(element)
    return () => {
      observer.disconnect()
      chart.destroy()
    }
  }, [stacks, forecast, props.days, isDark])

  const dearest = totals.indexOf(Math.max(...totals)) + 1
  const words =
    products.length === 0
      ? `No usage in ${props.month} yet`
      : `Daily cost in ${props.month} by product: ${usd(totals.reduce((sum, value) => sum + value, 0))} in all, most on day ${dearest}`
  return (
    <figure>
      <div ref={frame} role="img" aria-label={words} className="h-64" />
      <figcaption className="mt-2 flex flex-wrap gap-x-4 gap-y-1 text-sm text-ink-muted">
        {products.map((product, index) => (
          <span key={product} className="inline-flex items-center gap-1.5">
            <span className="size-2.5 rounded-[2px]" style={{ background: colourOf(index, isDark) }} />
            {product}
          </span>
        ))}
        {props.forecastUsd !== null && (
          <span className="inline-flex items-center gap-1.5">
            <span className="size-2.5 rounded-[2px] border border-ink-muted" />
            forecast
          </span>
        )}
      </figcaption>
    </figure>
  )
}

/** For each product the cumulated height of its part of the stack, day by day. */
function stack({ items, days }: ChartProps) {
  const products = [...new Set(items.map((item) => item.product_name))].sort()
  const totals = new Array<number>(days).fill(0)
  const stacks = products.map((product) => {
    for (const item of items) {
      if (item.product_name === product) totals[Number(item.date.slice(8, 10)) - 1]! += item.usd ?? 0
    }
    return [...totals]
  })
  return { products, stacks, totals }
}

/** What is left of the forecast, spread evenly over today and the days to come. */
function forecastBars({ forecastUsd, days }: ChartProps, totals: number[]): (number | null)[] {
  if (forecastUsd === null) return new Array(days).fill(null)
  const today = new Date().getUTCDate()
  const spent = totals.slice(0, today - 1).reduce((sum, value) => sum + value, 0)
  const left = Math.max(0, forecastUsd - spent) / (days - today + 1)
  return totals.map((_, index) => (index + 1 >= today ? left : null))
}

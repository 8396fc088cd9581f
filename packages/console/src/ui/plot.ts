import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'

/** The colors differ in lightness as well as hue, for users with color blindness. */
const hues = [180, 250, 75, 320, 150, 27, 285, 110]
export const seriesColor = (index: number, isDark: boolean): string =>
  `oklch(${(isDark ? 0.76 : 0.62) - (index % 3) * 0.07} 0.11 ${hues[index % hues.length]})`

const font = '12px "Inter Variable", sans-serif'
const tickText = new Intl.NumberFormat(undefined, { maximumFractionDigits: 6 })

type Axes = [x: uPlot.Axis, y: uPlot.Axis & { unit: string }]
type PlotOptions = Pick<uPlot.Options, 'scales' | 'series'> & {
  heightPx: number
  axes: Axes
  /** Called with the index of the point under the pointer, or null. */
  onPoint: (index: number | null) => void
}

/** Returns a color of the current theme. */
export const themeColor = (name: string): string =>
  getComputedStyle(document.documentElement).getPropertyValue(`--${name}`)

/** Draws a plot as wide as its element, and returns a function that removes it. */
export function drawPlot(
  element: HTMLElement,
  { heightPx, axes: [x, { unit, ...y }], onPoint, ...options }: PlotOptions,
  data: uPlot.AlignedData,
): () => void {
  const plain = { stroke: themeColor('ink-muted'), font, ticks: { show: false } }
  const chart = new uPlot(
    {
      ...options,
      width: element.clientWidth,
      height: heightPx,
      // Space for half of the last label of the x axis.
      padding: [null, 16, null, null],
      legend: { show: false },
      cursor: { x: false, y: false, drag: { x: false, y: false }, points: { show: false } },
      hooks: { setCursor: [({ cursor }) => onPoint(cursor.idx ?? null)] },
      axes: [
        { ...plain, size: 28, grid: { show: false }, ...x },
        {
          ...plain,
          size: (_chart, values) =>
            16 + 7.5 * Math.max(4, ...(values ?? []).map((text) => text?.length ?? 0)),
          grid: { stroke: themeColor('line'), width: 1 },
          values: (_chart, ticks) =>
            ticks.map((tick) => `${tickText.format(tick)}${unit === '%' ? '' : ' '}${unit}`),
          ...y,
        },
      ],
    },
    data,
    element,
  )
  const observer = new ResizeObserver(() => chart.setSize({ width: element.clientWidth, height: heightPx }))
  observer.observe(element)
  return () => {
    observer.disconnect()
    chart.destroy()
  }
}

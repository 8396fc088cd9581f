import { type RefObject, useLayoutEffect, useMemo, useState } from 'react'

interface FoldableColumn {
  width: string
  isFoldable?: boolean
}

/** Returns the least width that a track of the grid has: 140 of `minmax(140px, 2fr)`. */
const leastPx = (track: string): number => Number(/(\d+)px/.exec(track)?.[1] ?? 0)

/** Parts the columns into those that a frame has room for, and those that are folded into the first; the last go first. */
export function useFolding<Column extends FoldableColumn>(
  frame: RefObject<HTMLElement | null>,
  columns: Column[],
  besidesPx: number,
): { shown: Column[]; folded: Column[] } {
  const [foldedCount, setFoldedCount] = useState(0)
  useLayoutEffect(() => {
    const element = frame.current
    if (!element) return
    const fit = () => {
      let neededPx = columns.reduce((sum, { width }) => sum + leastPx(width), besidesPx)
      let count = 0
      for (const { width } of columns.filter(({ isFoldable }) => isFoldable).reverse()) {
        if (neededPx <= element.clientWidth) break
        neededPx -= leastPx(width)
        count += 1
      }
      setFoldedCount(count)
    }
    fit()
    const observer = new ResizeObserver(fit)
    observer.observe(element)
    return () => observer.disconnect()
  }, [frame, columns, besidesPx])
  return useMemo(() => {
    const foldable = columns.filter(({ isFoldable }) => isFoldable)
    const folded = foldable.slice(foldable.length - Math.min(foldedCount, foldable.length))
    return { shown: columns.filter((column) => !folded.includes(column)), folded }
  }, [columns, foldedCount])
}

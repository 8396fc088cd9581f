import { type RefObject, useLayoutEffect, useMemo, useState } from 'react'

interface FoldableColumn {
  width: string
  isFoldable?: boolean
}

/** Returns the minimum width of a grid track: 140 for `minmax(140px, 2fr)`. */
const minPx = (track: string): number => Number(/(\d+)px/.exec(track)?.[1] ?? 0)

/** Splits the columns into those that fit and those folded below the row. The last columns fold first. */
export function useFolding<Column extends FoldableColumn>(
  frame: RefObject<HTMLElement | null>,
  columns: Column[],
  extraPx: number,
): { shown: Column[]; folded: Column[] } {
  const [foldedCount, setFoldedCount] = useState(0)
  useLayoutEffect(() => {
    const element = frame.current
    if (!element) return
    const fit = () => {
      let neededPx = columns.reduce((sum, { width }) => sum + minPx(width), extraPx)
      let count = 0
      for (const { width } of columns.filter(({ isFoldable }) => isFoldable).reverse()) {
        if (neededPx <= element.clientWidth) break
        neededPx -= minPx(width)
        count += 1
      }
      setFoldedCount(count)
    }
    fit()
    const observer = new ResizeObserver(fit)
    observer.observe(element)
    return () => observer.disconnect()
  }, [frame, columns, extraPx])
  return useMemo(() => {
    const foldable = columns.filter(({ isFoldable }) => isFoldable)
    const folded = foldable.slice(foldable.length - Math.min(foldedCount, foldable.length))
    return { shown: columns.filter((column) => !folded.includes(column)), folded }
  }, [columns, foldedCount])
}

import { type RefObject, useLayoutEffect, useMemo, useState } from 'react'

interface FoldableColumn {
  key: string
  title: string
  width: string
  isFoldable?: boolean
  isActions?: boolean
}

const titlePxPerLetter = 6.5

/** Returns the minimum width of a grid track: 140 for `minmax(140px, 2fr)`. */
export const minPx = (track: string): number => Number(/(\d+)px/.exec(track)?.[1] ?? 0)

/**
 * Returns the columns in the order in which they fold: first the foldable ones, from the last to the first, then the
 * others, so that a narrow table never hides a column. The first column and the buttons always stay.
 */
const foldingOrder = <Column extends FoldableColumn>(columns: Column[]): Column[] => {
  const rest = columns.slice(1).filter(({ isActions }) => !isActions)
  return [
    ...rest.filter(({ isFoldable }) => isFoldable).reverse(),
    ...rest.filter(({ isFoldable }) => !isFoldable).reverse(),
  ]
}

/** Returns whether a folded cell needs a line of its own, because its title and content do not fit a part of one. */
export const needsLine = ({ title, width }: FoldableColumn): boolean =>
  title.length * titlePxPerLetter + minPx(width) > 240

/** Splits the columns into those that fit and those folded below the row. */
export function useFolding<Column extends FoldableColumn>(
  frame: RefObject<HTMLElement | null>,
  columns: Column[],
  extraPx: number,
): { shown: Column[]; folded: Column[] } {
  // A text, so that an unchanged layout renders nothing.
  const [foldedKeys, setFoldedKeys] = useState('')
  useLayoutEffect(() => {
    const element = frame.current
    if (!element) return
    const fit = () => {
      let neededPx = columns.reduce((sum, { width }) => sum + minPx(width), extraPx)
      const keys: string[] = []
      for (const { key, width } of foldingOrder(columns)) {
        if (neededPx <= element.clientWidth) break
        neededPx -= minPx(width)
        keys.push(key)
      }
      // The last folded column may have been wider than necessary, so that others fit again.
      const stillFolded = keys.toReversed().filter((key) => {
        const widthPx = minPx(columns.find((column) => column.key === key)!.width)
        if (neededPx + widthPx > element.clientWidth) return true
        neededPx += widthPx
        return false
      })
      setFoldedKeys(stillFolded.join(' '))
    }
    fit()
    const observer = new ResizeObserver(fit)
    observer.observe(element)
    return () => observer.disconnect()
  }, [frame, columns, extraPx])
  return useMemo(() => {
    const folded = new Set(foldedKeys.split(' '))
    return {
      shown: columns.filter(({ key }) => !folded.has(key)),
      folded: columns.filter(({ key }) => folded.has(key)),
    }
  }, [columns, foldedKeys])
}

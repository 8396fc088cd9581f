import { type RefObject, useLayoutEffect } from 'react'

/** Marks the sides at which something that scrolls goes on beyond its frame, on the element around it. */
export function useCutEdges(frame: RefObject<HTMLElement | null>): void {
  useLayoutEffect(() => {
    const inner = frame.current
    const outer = inner?.parentElement
    if (!inner || !outer) return
    const mark = () => {
      const { scrollLeft, scrollWidth, clientWidth } = inner
      const beyondRight = scrollWidth - clientWidth - scrollLeft
      outer.dataset.cut = `${scrollLeft > 1 ? 'left' : ''} ${beyondRight > 1 ? 'right' : ''}`.trim()
    }
    const observer = new ResizeObserver(mark)
    for (const element of [inner, ...inner.children]) observer.observe(element)
    inner.addEventListener('scroll', mark, { passive: true })
    return () => {
      observer.disconnect()
      inner.removeEventListener('scroll', mark)
    }
  }, [frame])
}

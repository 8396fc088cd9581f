import { type RefObject, useLayoutEffect } from 'react'

/** Sets `data-cut` on the parent of a scrolling element to the sides where its content is cut off. */
export function useScrollEdges(frame: RefObject<HTMLElement | null>): void {
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

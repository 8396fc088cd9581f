import { Link, type LinkProps, useLocation } from '@tanstack/react-router'
import { useEffect, useRef } from 'react'
import { useScrollEdges } from './columns/scroll-edges.ts'

interface TabLink {
  label: string
  to: string
  isExact?: boolean
}

/** Tabs that are links. */
export function TabLinks({ label, tabs }: { label: string; tabs: TabLink[] }) {
  const { pathname } = useLocation()
  const nav = useRef<HTMLElement>(null)
  useScrollEdges(nav)
  // biome-ignore lint/correctness/useExhaustiveDependencies: runs when the page changes
  useEffect(() => {
    const row = nav.current
    if (!row) return
    // On narrow screens, the row scrolls; keep the current tab visible.
    const observer = new ResizeObserver(() =>
      row.querySelector('[aria-current=page]')?.scrollIntoView({ block: 'nearest', inline: 'center' }),
    )
    observer.observe(row)
    return () => observer.disconnect()
  }, [pathname])
  return (
    <div className="cut-edges [--fade:var(--canvas)] max-md:-mx-4">
      <nav ref={nav} aria-label={label} className="border-b border-line max-md:overflow-x-auto max-md:px-4">
        <div className="tab-rows flex gap-x-1 md:flex-wrap">
          {tabs.map((tab) => (
            <Link
              key={tab.to}
              {...({ to: tab.to } as LinkProps)}
              activeOptions={{ exact: tab.isExact ?? false, includeSearch: false }}
              className="-mb-px flex h-9 items-center border-b-2 border-transparent px-3 whitespace-nowrap text-ink-muted hover:text-ink aria-[current=page]:border-accent aria-[current=page]:font-medium aria-[current=page]:text-ink"
            >
              <span className="tab-words" data-words={tab.label}>
                {tab.label}
              </span>
            </Link>
          ))}
        </div>
      </nav>
    </div>
  )
}

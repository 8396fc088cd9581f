import { Link, type LinkProps } from '@tanstack/react-router'
import { type CSSProperties, createContext, Fragment, type ReactNode, useContext, useEffect } from 'react'
import { count } from '../lib/format.ts'
import { CommandLines } from './commands.tsx'
import { Icon } from './icon.tsx'

/** The name of the open project, for the browser tab's title. */
export const PageTitleContext = createContext('')

/** Sets the browser tab's title. */
export function useTitle(title: string): void {
  useEffect(() => {
    document.title = title
  }, [title])
}

interface PageProps {
  title: string
  /** The browser tab's title, if several pages have the same title. */
  tabTitle?: string
  /** The breadcrumbs, outermost first. */
  trail?: [label: string, to: string][]
  /** Shown next to the title. */
  aside?: ReactNode
  actions?: ReactNode
  /** Why some actions are disabled. Shown as text, because users do not always hover over disabled buttons. */
  reasons?: (string | undefined)[]
  /** Uses the full width, for tables. */
  isWide?: boolean
  children: ReactNode
}

export function Page({
  title,
  tabTitle,
  trail = [],
  aside,
  actions,
  reasons = [],
  isWide = false,
  children,
}: PageProps) {
  const whyNot = [...new Set(reasons)].filter(Boolean).join(' ')
  const owner = useContext(PageTitleContext)
  useTitle([tabTitle ?? title, owner, 'Slipway'].filter(Boolean).join(' · '))
  return (
    <div className={`fits-list flex flex-col gap-4 p-6 max-md:p-4 ${isWide ? '' : 'max-w-[1280px]'}`}>
      {trail.length > 0 && <Trail trail={trail} />}
      <div className="flex min-h-8 flex-wrap items-center justify-between gap-x-6 gap-y-2">
        <div className="flex min-w-0 flex-wrap items-center gap-x-3 gap-y-1">
          <h1 className="min-w-0 text-xl font-semibold wrap-anywhere">{title}</h1>
          {aside}
        </div>
        {actions && <div className="flex flex-wrap items-center gap-2 max-md:gap-1.5">{actions}</div>}
      </div>
      {whyNot && <p className="-mt-2 text-sm text-ink-muted lg:text-right">{whyNot}</p>}
      {children}
    </div>
  )
}

function Trail({ trail }: { trail: [label: string, to: string][] }) {
  return (
    <nav aria-label="Breadcrumbs" className="-mb-3 flex items-center gap-1.5 text-sm text-ink-muted">
      <Icon name="chevron-left" size={14} aria-hidden="true" className="-ml-0.5" />
      {trail.map(([label, to], index) => (
        <Fragment key={to}>
          {index > 0 && <span aria-hidden="true">/</span>}
          <Link {...({ to } as LinkProps)} className="rounded-[3px] hover:text-ink hover:underline">
            {label}
          </Link>
        </Fragment>
      ))}
    </nav>
  )
}

export function Section({
  title,
  about,
  actions,
  children,
  id,
}: {
  title: string
  /** A sentence below the title. */
  about?: string
  actions?: ReactNode
  children: ReactNode
  id?: string
}) {
  return (
    <section aria-label={title} id={id} className="flex flex-col gap-3">
      <div className="flex min-h-7 flex-wrap items-center justify-between gap-x-6 gap-y-2">
        <div className={about ? 'min-w-0 flex-[1_1_240px]' : 'min-w-0'}>
          <h2 className="text-lg font-semibold wrap-anywhere">{title}</h2>
          {about && <p className="text-ink-muted">{about}</p>}
        </div>
        {actions && <div className="flex items-center gap-2">{actions}</div>}
      </div>
      {children}
    </section>
  )
}

/** A list of labels and values, in two columns if there is room. */
export function Facts({ items }: { items: [string, ReactNode][] }) {
  return (
    <dl
      className="card grid grid-cols-1 gap-x-8 px-4 py-2 lg:grid-flow-col lg:grid-cols-2 lg:grid-rows-[repeat(var(--rows),auto)]"
      style={{ '--rows': Math.ceil(items.length / 2) } as CSSProperties}
    >
      {items.map(([label, value]) => (
        <div key={label} className="flex min-h-8 items-center gap-4 py-1">
          <dt className="w-28 shrink-0 text-ink-muted">{label}</dt>
          <dd className="min-w-0 flex-1 break-words">{value}</dd>
        </div>
      ))}
    </dl>
  )
}

interface EmptyProps {
  title: string
  children: ReactNode
  action?: ReactNode
  cli?: string
  curl?: string
}

/** Replaces an empty list: explains it, and offers the button and the commands to create the first item. */
export function Empty({ title, children, action, cli = '', curl = '' }: EmptyProps) {
  return (
    <div className="card flex flex-col items-center gap-3 px-6 py-10 text-center">
      <p className="text-lg font-semibold">{title}</p>
      <p className="max-w-lg text-balance text-ink-muted">{children}</p>
      {action}
      {cli && (
        <div className="mt-3 w-full max-w-2xl">
          <CommandLines cli={cli} curl={curl} />
        </div>
      )}
    </div>
  )
}

/** Grey bars in place of content that is loading, so that the layout does not move. */
export function Skeleton({ rows = 6, className = '' }: { rows?: number; className?: string }) {
  return (
    <div role="status" aria-label="Loading" className={`card divide-y divide-line ${className}`}>
      {Array.from({ length: rows }, (_, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: rows without identity
        <div key={index} className="flex h-9 items-center gap-6 px-3">
          <span className="h-2.5 w-40 rounded bg-sunken" />
          <span className="h-2.5 w-24 rounded bg-sunken" />
          <span className="h-2.5 w-20 rounded bg-sunken max-md:hidden" />
        </div>
      ))}
    </div>
  )
}

/** A meter that shows how much of a limit is used. */
export function UsageBar({
  label,
  used,
  max,
  unit = '',
}: {
  label: string
  used: number
  max: number
  unit?: string
}) {
  const share = max > 0 ? Math.min(1, used / max) : used > 0 ? 1 : 0
  const tone = share >= 1 ? 'bg-red' : share >= 0.8 ? 'bg-amber' : 'bg-accent'
  return (
    <div>
      <div className="flex items-end justify-between gap-4 text-sm">
        <span>{label}</span>
        <span className="figures whitespace-nowrap text-ink-muted">
          {count(used)} of {count(max)}
          {unit && ` ${unit}`}
        </span>
      </div>
      {/* biome-ignore lint/a11y/useSemanticElements: browsers style <meter> differently */}
      <div
        role="meter"
        aria-label={label}
        aria-valuemin={0}
        aria-valuemax={max}
        aria-valuenow={used}
        className="mt-1 h-1.5 overflow-hidden rounded-full bg-sunken"
      >
        <div className={`h-full rounded-full ${tone}`} style={{ width: `${share * 100}%` }} />
      </div>
    </div>
  )
}

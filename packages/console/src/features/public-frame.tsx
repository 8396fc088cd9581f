import type { ReactNode } from 'react'

/** The layout of pages that can be opened without a session. Its header is not printed. */
export function PublicFrame({ aside, children }: { aside: ReactNode; children: ReactNode }) {
  return (
    <div className="min-h-dvh">
      <header className="flex min-h-12 flex-wrap items-center justify-between gap-x-6 gap-y-1 border-b border-line bg-surface px-6 py-2 max-md:px-4 print:hidden">
        <span className="flex items-center gap-2 font-semibold tracking-tight">
          <img src="/favicon.svg" alt="" width={20} height={20} />
          slipway
        </span>
        {aside}
      </header>
      <main className="mx-auto flex max-w-[1280px] flex-col gap-4 p-6 max-md:p-4">{children}</main>
    </div>
  )
}

import { Dialog } from '@base-ui/react/dialog'
import { Outlet, useLocation } from '@tanstack/react-router'
import { lazy, Suspense, useEffect, useRef, useState } from 'react'
import { useIsOffline, useReachability } from '../api/connection.ts'
import { useProjectId } from '../api/me.ts'
import { Palette } from '../features/palette.tsx'
import { SignInAgain } from '../features/sign-in/sign-in-again.tsx'
import { Icon } from '../ui/icon.tsx'
import { Header } from './header.tsx'
import { loadWhenReachable } from './lazy-page.ts'
import { useShortcuts } from './shortcuts.ts'
import { Sidebar } from './sidebar.tsx'

/** The server sets this attribute if it was started with `--dev`. */
const isDevMode = 'dev' in document.documentElement.dataset
const DevBar = lazy(() => import('../features/dev-bar.tsx'))
const Help = lazy(() => loadWhenReachable(() => import('./help.tsx')))

function ConnectionBanner() {
  const isOffline = useIsOffline()
  const { isPageWaiting } = useReachability()
  if (!isOffline && !isPageWaiting) return null
  return (
    <p role="alert" className="border-b border-line bg-amber-soft px-4 py-2 text-amber-text">
      {isOffline
        ? 'You are offline. Showing the last known data. Changes that you make now will not be saved.'
        : 'Slipway is not responding. The page that you chose will open when the connection is restored.'}
    </p>
  )
}

/** The layout of every page: header, sidebar, search and help. */
export function Shell() {
  const [isSearching, setSearching] = useState(false)
  /** Undefined until the help is first opened, when its code is loaded. */
  const [isHelping, setHelping] = useState<boolean>()
  const [isSheetOpen, setSheetOpen] = useState(false)
  const projectId = useProjectId()
  const { pathname } = useLocation()
  useShortcuts(projectId, { search: () => setSearching(true), help: () => setHelping(true) })
  const main = useRef<HTMLElement>(null)
  // biome-ignore lint/correctness/useExhaustiveDependencies: runs when the page changes
  useEffect(() => {
    setSheetOpen(false)
    // The page scrolls inside main, which needs the focus to scroll with the keyboard.
    if (!main.current?.contains(document.activeElement)) main.current?.focus({ preventScroll: true })
  }, [pathname])
  return (
    <div className="flex h-dvh flex-col">
      <a
        href="#content"
        className="sr-only z-60 rounded-md bg-surface p-2 focus:not-sr-only focus:absolute focus:top-2 focus:left-2"
      >
        Skip to content
      </a>
      {isDevMode && (
        <Suspense>
          <DevBar />
        </Suspense>
      )}
      <Header
        onSearch={() => setSearching(true)}
        onHelp={() => setHelping(true)}
        onMenu={() => setSheetOpen(true)}
      />
      <ConnectionBanner />
      <div className="flex min-h-0 flex-1">
        {/* A user without a project has no links. */}
        <aside className="w-44 shrink-0 overflow-y-auto border-r border-line not-has-[a]:hidden max-md:hidden">
          <Sidebar />
        </aside>
        <main
          ref={main}
          id="content"
          tabIndex={-1}
          data-scroll-restoration-id="content"
          className="min-w-0 flex-1 overflow-y-auto pb-(--toast-space) outline-none md:[scrollbar-gutter:stable]"
        >
          <Outlet />
        </main>
      </div>
      <Dialog.Root open={isSheetOpen} onOpenChange={setSheetOpen}>
        <Dialog.Portal>
          <Dialog.Backdrop className="fixed inset-0 z-40 bg-backdrop" />
          <Dialog.Popup
            data-modal
            className="fixed inset-y-0 left-0 z-50 w-60 overflow-y-auto border-r border-line-strong bg-surface shadow-float"
          >
            <div className="flex items-center justify-between pt-3 pr-3 pl-5">
              <Dialog.Title className="font-semibold">Menu</Dialog.Title>
              <Dialog.Close
                aria-label="Close"
                className="inline-flex size-8 items-center justify-center rounded-md text-ink-muted hover:bg-sunken hover:text-ink"
              >
                <Icon name="x" size={16} />
              </Dialog.Close>
            </div>
            <Sidebar />
            <div className="mx-3 border-t border-line py-2 sm:hidden">
              <button
                type="button"
                onClick={() => {
                  setSheetOpen(false)
                  setHelping(true)
                }}
                className="flex h-8 w-full items-center gap-2.5 rounded-md px-2 text-ink-muted hover:bg-sunken hover:text-ink"
              >
                <Icon name="circle-question-mark" size={16} />
                Help
              </button>
            </div>
          </Dialog.Popup>
        </Dialog.Portal>
      </Dialog.Root>
      <Palette isOpen={isSearching} onClose={() => setSearching(false)} />
      <SignInAgain />
      {isHelping !== undefined && (
        <Suspense>
          <Help isOpen={isHelping} onClose={() => setHelping(false)} />
        </Suspense>
      )}
    </div>
  )
}

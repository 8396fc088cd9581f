import { Toast } from '@base-ui/react/toast'
import { useEffect, useState, useSyncExternalStore } from 'react'
import { isWorthRetrying } from '../lib/error-text.ts'
import { removeToast, type Toast as StoredToast, toastStore } from '../lib/toasts.ts'
import { Button } from './button.tsx'
import { ErrorNote } from './error.tsx'
import { Icon } from './icon.tsx'

const shownMs = 5_000
/** Long enough to read the toast and decide. */
const undoMs = 10_000
/** The space above and below the toasts. */
const edgePx = 32

/**
 * Sets the padding at the end of pages and dialogs, so that content under a toast can be scrolled into view.
 */
function reserveSpace(viewport: HTMLElement | null) {
  if (!viewport) return
  const observer = new ResizeObserver(() => {
    const height = viewport.offsetHeight
    document.documentElement.style.setProperty('--toast-space', `${height > 0 ? height + edgePx : 0}px`)
  })
  observer.observe(viewport)
  return () => observer.disconnect()
}

/** Notifications in a corner of the page. Failures stay until the user closes them or they are resolved. */
export function Toasts() {
  return (
    <Toast.Provider limit={4}>
      <Toast.Portal>
        <Toast.Viewport
          ref={reserveSpace}
          className="fixed right-4 bottom-4 z-60 flex w-96 max-w-[calc(100vw-2rem)] flex-col gap-2"
        >
          <List />
        </Toast.Viewport>
      </Toast.Portal>
    </Toast.Provider>
  )
}

function List() {
  return useStoredToasts().map((toast) => {
    const { error, retry, undo } = toast.data ?? {}
    return (
      <Toast.Root
        key={toast.id}
        toast={toast}
        className="rounded-md border border-line-strong bg-surface p-3 shadow-float data-limited:hidden"
      >
        <Toast.Content>
          <div className="flex items-center gap-2">
            {error ? (
              <Icon name="circle-alert" size={16} className="shrink-0 text-red-text" />
            ) : (
              <Icon name="circle-check" size={16} className="shrink-0 text-green-text" />
            )}
            <Toast.Title className="min-w-0 flex-1 font-medium break-words" render={<p />} />
            {/* The toast is replaced by one that reports the result. */}
            {undo && <ToastButton label="Undo" run={() => undo().finally(() => removeToast(toast.id))} />}
            <Toast.Close aria-label="Dismiss" className="rounded-[4px] p-1 text-ink-muted hover:bg-sunken">
              <Icon name="x" size={14} />
            </Toast.Close>
          </div>
          {error && (
            <div className="mt-2">
              <ErrorNote
                error={error}
                action={
                  retry &&
                  isWorthRetrying(error) && (
                    <ToastButton label="Try again" busyLabel="Trying again…" run={retry} />
                  )
                }
              />
            </div>
          )}
        </Toast.Content>
      </Toast.Root>
    )
  })
}

/** A button that is busy until its action has ended. */
function ToastButton({ label, busyLabel = label, run }: ToastButtonProps) {
  const [isBusy, setBusy] = useState(false)
  return (
    <Button
      size="small"
      isBusy={isBusy}
      onClick={() => {
        setBusy(true)
        void run().finally(() => setBusy(false))
      }}
    >
      {isBusy ? busyLabel : label}
    </Button>
  )
}

interface ToastButtonProps {
  label: string
  busyLabel?: string
  run: () => Promise<void>
}

/** Passes each stored toast to the library once; the library closes it after its timeout. */
function useStoredToasts() {
  const stored = useSyncExternalStore(toastStore.subscribe, toastStore.getSnapshot)
  const { toasts, add, close } = Toast.useToastManager<Pick<StoredToast, 'error' | 'retry' | 'undo'>>()
  useEffect(() => {
    const storedIds = new Set(stored.map(({ id }) => id))
    for (const { id, transitionStatus } of toasts)
      if (!storedIds.has(id) && transitionStatus !== 'ending') close(id)
    const shownIds = new Set(toasts.map(({ id }) => id))
    for (const { id, title, error, retry, undo } of stored) {
      if (shownIds.has(id)) continue
      add({
        id,
        title,
        timeout: error ? 0 : undo ? undoMs : shownMs,
        priority: error ? 'high' : 'low',
        onClose: () => removeToast(id),
        ...(error && { data: { error, retry } }),
        ...(undo && { data: { undo } }),
      })
    }
  }, [stored, toasts, add, close])
  return toasts
}

import { Toast } from '@base-ui/react/toast'
import { CircleAlert, CircleCheck, X } from 'lucide-react'
import { ErrorNote } from './error.tsx'

const manager = Toast.createToastManager<{ error?: Error }>()

/** Says what has happened; failures stay until they are read. */
export function showResult({ title, error }: { title: string; error?: Error }): void {
  manager.add({
    title,
    timeout: error ? 0 : 5000,
    priority: error ? 'high' : 'low',
    ...(error && { data: { error } }),
  })
}

export function Results() {
  return (
    <Toast.Provider toastManager={manager} limit={4}>
      <Toast.Portal>
        <Toast.Viewport className="fixed right-4 bottom-4 z-60 flex w-96 max-w-[calc(100vw-2rem)] flex-col gap-2">
          <List />
        </Toast.Viewport>
      </Toast.Portal>
    </Toast.Provider>
  )
}

function List() {
  const { toasts } = Toast.useToastManager<{ error?: Error }>()
  return toasts.map((toast) => {
    const error = toast.data?.error
    return (
      <Toast.Root
        key={toast.id}
        toast={toast}
        className="rounded-md border border-line-strong bg-surface p-3 shadow-float data-limited:hidden"
      >
        <Toast.Content>
          <div className="flex items-center gap-2">
            {error ? (
              <CircleAlert size={16} className="shrink-0 text-red-text" />
            ) : (
              <CircleCheck size={16} className="shrink-0 text-green-text" />
            )}
            <Toast.Title className="min-w-0 flex-1 font-medium break-words" render={<p />} />
            <Toast.Close aria-label="Dismiss" className="rounded-[4px] p-1 text-ink-muted hover:bg-sunken">
              <X size={14} />
            </Toast.Close>
          </div>
          {error && (
            <div className="mt-2">
              <ErrorNote error={error} />
            </div>
          )}
        </Toast.Content>
      </Toast.Root>
    )
  })
}

export interface Toast {
  id: string
  title: string
  error?: Error
  /** The id of what has changed. */
  about?: string | undefined
}

/** A toast says what has happened. The store knows no React, so that whoever makes a change can add to it. */
let toasts: readonly Toast[] = []
let lastId = 0
const listeners = new Set<() => void>()

function set(next: readonly Toast[]): void {
  toasts = next
  for (const listener of listeners) listener()
}

export const toastStore = {
  subscribe(listener: () => void): () => void {
    listeners.add(listener)
    return () => listeners.delete(listener)
  },
  getSnapshot: () => toasts,
}

/** Of one thing only the newest toast is true: "drains" goes when it is open again. Failures stay until they are read. */
export function showToast(toast: Omit<Toast, 'id'>): void {
  lastId += 1
  const stillTrue = toasts.filter(({ about, error }) => error || !about || about !== toast.about)
  set([...stillTrue, { ...toast, id: `toast-${lastId}` }])
}

export function removeToast(id: string): void {
  set(toasts.filter((toast) => toast.id !== id))
}

export interface Toast {
  id: string
  title: string
  error?: Error
  /** The id of the changed resource. */
  about?: string | undefined
}

/** A toast reports an outcome. The store does not depend on React, so that any code can add to it. */
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

/** Replaces an earlier toast about the same resource. Failures stay until the user closes them. */
export function showToast(toast: Omit<Toast, 'id'>): void {
  lastId += 1
  const stillTrue = toasts.filter(({ about, error }) => error || !about || about !== toast.about)
  set([...stillTrue, { ...toast, id: `toast-${lastId}` }])
}

export function removeToast(id: string): void {
  set(toasts.filter((toast) => toast.id !== id))
}

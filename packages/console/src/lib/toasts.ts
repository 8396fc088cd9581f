export interface Toast {
  id: string
  title: string
  error?: Error
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

export function showToast(toast: Omit<Toast, 'id'>): void {
  lastId += 1
  set([...toasts, { ...toast, id: `toast-${lastId}` }])
}

export function removeToast(id: string): void {
  set(toasts.filter((toast) => toast.id !== id))
}

export interface Toast {
  id: string
  title: string
  error?: Error
  /** The ID of the changed resource. */
  about?: string | undefined
  /** Repeats the failed action. */
  retry?: (() => Promise<void>) | undefined
  /** Restores the state before the action. */
  undo?: (() => Promise<void>) | undefined
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

/**
 * Replaces an earlier toast about the same resource. A failure stays until the user closes or retries it, the
 * same action fails again, or the action succeeds. A success passes, in `resolvesFailure`, the title of the
 * failure that it resolves.
 */
export function showToast({
  resolvesFailure,
  ...toast
}: Omit<Toast, 'id'> & { resolvesFailure?: string }): void {
  lastId += 1
  const resolvedTitle = toast.error ? toast.title : resolvesFailure
  const remaining = toasts.filter(({ title, about, error }) =>
    error ? title !== resolvedTitle : !about || about !== toast.about,
  )
  set([...remaining, { ...toast, id: `toast-${lastId}` }])
}

export function removeToast(id: string): void {
  set(toasts.filter((toast) => toast.id !== id))
}

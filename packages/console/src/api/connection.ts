import { ApiError } from '@slipway/sdk'
import { useSyncExternalStore } from 'react'

/** True if the browser has no network. The service can also be unreachable while the browser is online. */
export const isOffline = (): boolean => !navigator.onLine

export function onConnectionChange(listener: () => void): () => void {
  addEventListener('online', listener)
  addEventListener('offline', listener)
  return () => {
    removeEventListener('online', listener)
    removeEventListener('offline', listener)
  }
}

export const useIsOffline = (): boolean => useSyncExternalStore(onConnectionChange, isOffline)

/** What the page's own requests show about the connection to the service. */
interface Reachability {
  /** True if the last request got no response. */
  isLost: boolean
  /** True while the code of the page that the user opened cannot be loaded. */
  isPageWaiting: boolean
}
let reachability: Reachability = { isLost: false, isPageWaiting: false }
const listeners = new Set<() => void>()

export function setReachability(changes: Partial<Reachability>): void {
  const next = { ...reachability, ...changes }
  if (next.isLost === reachability.isLost && next.isPageWaiting === reachability.isPageWaiting) return
  reachability = next
  for (const listener of listeners) listener()
}

export const useReachability = (): Reachability =>
  useSyncExternalStore(
    (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    () => reachability,
  )

/** A proxy responds with these statuses if the service behind it does not respond. */
const gatewayErrors = [502, 503, 504]

/** Rejects changes while the browser is offline, so that they are never sent later. */
export const fetchUnlessOffline: typeof fetch = async (input, init) => {
  if (isOffline() && init?.method !== 'GET')
    throw new ApiError({ code: 'offline', message: 'You are offline. The request was not sent.' })
  try {
    const response = await fetch(input, init)
    setReachability({ isLost: gatewayErrors.includes(response.status) })
    return response
  } catch (error) {
    const isCancelled = error instanceof DOMException && error.name === 'AbortError'
    if (!isCancelled) setReachability({ isLost: true })
    throw error
  }
}

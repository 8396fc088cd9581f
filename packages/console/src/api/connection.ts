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

/** Rejects changes while the browser is offline, so that they are never sent later. */
export const fetchUnlessOffline: typeof fetch = (input, init) => {
  if (isOffline() && init?.method !== 'GET')
    throw new ApiError({ code: 'offline', message: 'You are offline. The request was not sent.' })
  return fetch(input, init)
}

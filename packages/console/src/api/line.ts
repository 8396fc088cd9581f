import { ApiError } from '@slipway/sdk'
import { useSyncExternalStore } from 'react'

/** The browser knows when it is offline; an unreachable service is a different state. */
export const isOffline = (): boolean => !navigator.onLine

export function onLineChange(listener: () => void): () => void {
  addEventListener('online', listener)
  addEventListener('offline', listener)
  return () => {
    removeEventListener('online', listener)
    removeEventListener('offline', listener)
  }
}

export const useIsOffline = (): boolean => useSyncExternalStore(onLineChange, isOffline)

/** Refuses a change at once while there is no line: what is not sent now is never sent later. */
export const fetchNowOrNever: typeof fetch = (input, init) => {
  if (isOffline() && init?.method !== 'GET')
    throw new ApiError({ code: 'offline', message: 'You are offline. The request was not sent.' })
  return fetch(input, init)
}

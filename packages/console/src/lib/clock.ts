import { useSyncExternalStore } from 'react'

/** The clock of a local service in dev mode, as read at `readAt` by the browser's clock. */
interface ServiceClock {
  now: string
  /** The speed relative to real time; 0 if the clock is frozen. */
  rate: number
  readAt: number
}

/** One timer updates every age and elapsed time on the page. */
let nowMs = Date.now()
let service: ServiceClock | undefined
let timer: ReturnType<typeof setInterval> | undefined
const listeners = new Set<() => void>()

/** Returns the current time of the service. */
export function readNow(): number {
  const real = Date.now()
  return service ? Date.parse(service.now) + Math.max(0, real - service.readAt) * service.rate : real
}

function update() {
  nowMs = readNow()
  for (const each of listeners) each()
}

/** Makes ages and elapsed times follow the service's clock. */
export function followServiceClock(clock: ServiceClock) {
  service = clock
  update()
}

function subscribe(listener: () => void) {
  listeners.add(listener)
  timer ??= setInterval(update, 1000)
  return () => {
    listeners.delete(listener)
    if (listeners.size > 0) return
    clearInterval(timer)
    timer = undefined
  }
}

export const useNow = (): number => useSyncExternalStore(subscribe, () => nowMs)

import { useSyncExternalStore } from 'react'

/** The clock of a local service in dev mode, as it was at `readAt` by the browser's clock. */
interface ServiceClock {
  now: string
  /** How fast it runs: 0 if it is frozen. */
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

/** From now on, ages and elapsed times follow the clock of the service. */
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

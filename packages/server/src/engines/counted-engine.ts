import { type Engine, type EngineCalls, EngineError } from './engine.ts'

/**
 * Which methods of the interface are counted. Other methods of an engine, which are only for tests, are not
 * counted.
 */
const methods: Record<keyof Engine, boolean> = {
  inventory: true,
  ensureVm: true,
  powerVm: true,
  removeVm: true,
  inspectVm: true,
  cordonHost: true,
  ensureDisk: true,
  growDisk: true,
  removeDisk: true,
  inspectDisk: true,
  attachDisk: true,
  detachDisk: true,
  capture: true,
  removeCapture: true,
  inspectCapture: true,
  setPublicAddress: true,
  applyFirewall: true,
  serialLog: true,
  openConsole: true,
  sample: true,
  watch: false,
}

export const noCalls = (): EngineCalls => ({ byMethod: new Map(), failures: new Map() })

/** Wraps an engine, and counts its calls in `calls`. */
export function countedEngine<E extends Engine>(engine: E, calls: EngineCalls): E {
  return new Proxy(engine, {
    get(target, name) {
      const member = Reflect.get(target, name, target)
      if (typeof member !== 'function') return member
      const isCounted = methods[name as keyof Engine]
      if (!isCounted) return member.bind(target)
      return (...args: unknown[]) => {
        const end = begin(calls, name as keyof Engine)
        const result = Reflect.apply(member, target, args)
        if (!(result instanceof Promise)) return countedItems(result, end)
        result.then(() => end(), end)
        return result
      }
    },
  })
}

/** Counts a call. The returned function adds the call's duration and, if it failed, its error. */
function begin({ byMethod, failures }: EngineCalls, method: string): (error?: unknown) => void {
  const counted = byMethod.get(method) ?? { count: 0, seconds: 0 }
  byMethod.set(method, counted)
  counted.count++
  const startedAt = performance.now()
  return (error) => {
    counted.seconds += (performance.now() - startedAt) / 1000
    if (error === undefined) return
    const kind = error instanceof EngineError ? error.kind : 'other'
    failures.set(kind, (failures.get(kind) ?? 0) + 1)
  }
}

async function* countedItems<T>(items: AsyncIterable<T>, end: (error?: unknown) => void) {
  try {
    yield* items
    end()
  } catch (error) {
    end(error)
    throw error
  }
}

import { onTestFinished } from 'vitest'
import type { SimulatedEngine } from '../../src/engines/simulated/engine.ts'

type Method =
  | 'ensureVm'
  | 'powerVm'
  | 'inspectVm'
  | 'attachDisk'
  | 'applyFirewall'
  | 'ensureDisk'
  | 'growDisk'
type Call = (subject: { id: string }, ...rest: never[]) => Promise<never>

function gate() {
  let open = () => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { opened, open }
}

/**
 * Makes calls of one engine method wait until they are released: all calls, or only those about one VM or disk. They
 * wait before or after the work of the engine.
 */
export function holdCalls(
  engine: SimulatedEngine,
  method: Method,
  id?: string,
  at: 'begin' | 'end' = 'begin',
) {
  const [called, released] = [gate(), gate()]
  const act = engine[method].bind(engine) as Call
  const held: Call = async (subject, ...rest) => {
    const isHeld = id === undefined || subject.id === id
    const wait = async (now: 'begin' | 'end') => {
      if (!isHeld || at !== now) return
      called.open()
      await released.opened
    }
    await wait('begin')
    const response = await act(subject, ...rest)
    await wait('end')
    return response
  }
  Object.assign(engine, { [method]: held })
  onTestFinished(() => {
    released.open()
    delete (engine as Partial<SimulatedEngine>)[method]
  })
  return { called: called.opened, release: released.open }
}

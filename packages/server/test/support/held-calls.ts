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
  const isOpen = new Promise<void>((resolve) => {
    open = resolve
  })
  return { isOpen, open }
}

/**
 * Makes the engine's calls of one method, or those about one VM, wait until they are released, at their beginning or
 * their end.
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
      await released.isOpen
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
  return { called: called.isOpen, release: released.open }
}

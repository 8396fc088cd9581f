import type { Engine, VmRef, VmStatus, WantedState } from '../engines/engine.ts'
import { engineFault } from './faults.ts'

const changes = [
  'ensureVm',
  'powerVm',
  'removeVm',
  'ensureDisk',
  'growDisk',
  'removeDisk',
  'attachDisk',
  'detachDisk',
  'capture',
  'removeCapture',
  'setPublicAddress',
  'applyFirewall',
] as const

/**
 * Wraps an engine so that faults can make it do nothing. With `forget`, the engine accepts a change but does
 * nothing. With `lie`, it also reports the VM in the wanted state until the step ends. Afterwards, inspection
 * shows the real state.
 */
export function faultyEngine<E extends Engine>(engine: E): E {
  const wantedPower = new Map<string, VmStatus['power']>()

  async function pretend(method: string, args: unknown[]): Promise<unknown> {
    const [ref, second] = args as [VmRef, unknown]
    const isLying = engineFault.getStore() === 'lie'
    if (method === 'ensureVm') {
      if (!isLying) return engine.inspectVm(ref, AbortSignal.timeout(10_000))
      const { firewall, power } = second as WantedState
      const { generation } = args[2] as { generation: number }
      return statusOf(ref.id, generation, firewall.generation, power === 'on' ? 'running' : 'off')
    }
    if (method === 'powerVm') wantedPower.set(ref.id, second === 'reset' ? 'running' : 'off')
    return undefined
  }

  return new Proxy(engine, {
    get(target, name) {
      const member = Reflect.get(target, name, target)
      if (typeof member !== 'function') return member
      return (...args: unknown[]) => {
        const fault = engineFault.getStore()
        if (fault && changes.includes(name as never)) return pretend(name as string, args)
        if (fault === 'lie' && name === 'inspectVm') return lyingInspection(args)
        return Reflect.apply(member, target, args)
      }
    },
  })

  async function lyingInspection(args: unknown[]): Promise<VmStatus | null> {
    const [ref, signal] = args as [VmRef, AbortSignal]
    const status = await engine.inspectVm(ref, signal)
    const power = wantedPower.get(ref.id)
    return status && power ? { ...status, power } : status
  }
}

const statusOf = (
  id: string,
  generation: number,
  firewallGeneration: number,
  power: VmStatus['power'],
): VmStatus => ({
  id,
  generation,
  power,
  sshDestination: '',
  publicAddress: '',
  firewallGeneration,
  diskIds: [],
})

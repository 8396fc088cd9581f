import { EngineError, type VmStatus } from '../engine.ts'
import type { IncusContext } from './context.ts'
import { closingChange, withoutSecrets } from './definition.ts'
import {
  changeInstance,
  diskIdsOf,
  generationOf,
  goalOf,
  hasCrashed,
  type Instance,
  isOn,
  marks,
  shouldStop,
} from './instances.ts'

const sshPort = 22
// If a booting guest misses a packet, TCP sends it again only after a second, so a new connection is faster.
// The last probe is long enough for a slow guest.
const probesMs = [200, 400, 1_400]
const maxCachedBoots = 10_000

export class Statuses {
  readonly #ctx: IncusContext
  /** For each VM, the start time of the last boot in which this process saw the guest respond on SSH. */
  readonly #answered = new Map<string, string>()

  constructor(ctx: IncusContext) {
    this.#ctx = ctx
  }

  /** Returns the status for the inventory. Does not connect to the guest. */
  forInventory(instance: Instance, firewallGeneration: number): VmStatus {
    return this.#status(instance, firewallGeneration, powerOf(instance))
  }

  /**
   * Returns the status for an inspection. A VM that has shut down counts as off only when its gate is closed,
   * because it could start again until then.
   */
  async inspect(instance: Instance, firewallGeneration: number, signal: AbortSignal): Promise<VmStatus> {
    if (instance.status === 'Error')
      throw new EngineError(
        'unavailable',
        `the Incus cluster member ${instance.location} does not report the state of ${instance.name}`,
      )
    const seen = isShutDown(instance) ? await this.#closeGate(instance, signal) : instance
    const power = powerOf(seen)
    const isBooting = power === 'running' && !(await this.#hasAnswered(seen, signal))
    return this.#status(seen, firewallGeneration, isBooting ? 'booting' : power)
  }

  async #closeGate(instance: Instance, signal: AbortSignal): Promise<Instance> {
    const call = { generation: generationOf(instance), signal }
    const id = instance.config[marks.id]!
    const after = await changeInstance(this.#ctx, id, call, (now) =>
      isShutDown(now) ? closingChange(now) : null,
    )
    return after ?? instance
  }

  /** Removes the private host key, which the guest now has. Returns false on failure; the next inspection tries again. */
  async #removeSecrets(instance: Instance, signal: AbortSignal): Promise<boolean> {
    if (!withoutSecrets(instance)) return true
    const call = { generation: generationOf(instance), signal }
    const changed = changeInstance(this.#ctx, instance.config[marks.id]!, call, withoutSecrets)
    return changed.then(
      () => true,
      () => false,
    )
  }

  async #hasAnswered(instance: Instance, signal: AbortSignal): Promise<boolean> {
    const { config, last_used_at } = instance
    const [id, address] = [config[marks.id]!, config[marks.publicAddress] ?? '']
    if (address === '' || this.#answered.get(id) === last_used_at) return true
    if (!(await this.#answersSsh(address, signal))) return false
    if (!(await this.#removeSecrets(instance, signal))) return true
    if (this.#answered.size >= maxCachedBoots) this.#answered.clear()
    this.#answered.set(id, last_used_at)
    return true
  }

  async #answersSsh(address: string, signal: AbortSignal): Promise<boolean> {
    for (const probeMs of probesMs) {
      const limit = AbortSignal.any([signal, AbortSignal.timeout(probeMs)])
      if (await this.#ctx.answersSsh(address, sshPort, limit).catch(() => false)) return true
    }
    return false
  }

  #status(instance: Instance, firewallGeneration: number, power: VmStatus['power']): VmStatus {
    const address = instance.config[marks.publicAddress] ?? ''
    const isReachable = address !== '' && power !== 'off' && power !== 'crashed'
    return {
      id: instance.config[marks.id]!,
      generation: generationOf(instance),
      power,
      sshDestination: isReachable ? `root@${address}` : '',
      publicAddress: address,
      firewallGeneration,
      diskIds: diskIdsOf(instance),
      ...(power === 'crashed' && { detail: 'the guest stopped unexpectedly' }),
    }
  }
}

const isShutDown = (instance: Instance) => instance.status === 'Stopped' && shouldStop(instance)

function powerOf(instance: Instance): VmStatus['power'] {
  // Until the goal is `asked`, the guest may not have been asked to shut down. Report `running`, so that the
  // caller asks again.
  if (isOn(instance)) return goalOf(instance) === 'asked' ? 'stopping' : 'running'
  return hasCrashed(instance) ? 'crashed' : 'off'
}

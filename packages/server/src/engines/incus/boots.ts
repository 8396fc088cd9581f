import { setTimeout as sleep } from 'node:timers/promises'
import type { VmRef, VmStatus } from '../engine.ts'
import { isLocalBridge } from './agent/local-networks.ts'
import type { IncusContext } from './context.ts'
import { findInstance, marks } from './instances.ts'
import { rewriteForward } from './networks.ts'

// A container responds within a second; a VM may take minutes.
const [firstCheckMs, lastCheckMs] = [50, 1_000]
const [firstRewriteMs, nextRewriteMs] = [10_000, 30_000]

type Inspect = (vm: VmRef, signal: AbortSignal) => Promise<VmStatus | null>

/** Waits until guests have booted, because Incus reports only that they were started. */
export class Boots {
  readonly #ctx: IncusContext
  readonly #inspect: Inspect
  readonly #onBooted: (vmId: string) => void
  readonly #booting = new Set<string>()
  readonly #closing = new AbortController()

  constructor(ctx: IncusContext, inspect: Inspect, onBooted: (vmId: string) => void) {
    this.#ctx = ctx
    this.#inspect = inspect
    this.#onBooted = onBooted
  }

  /** Checks in the background until the guest responds or is no longer booting. */
  watch(vm: VmRef): void {
    if (this.#booting.has(vm.id)) return
    this.#booting.add(vm.id)
    void this.#wait(vm)
      .catch(() => {})
      .finally(() => {
        this.#booting.delete(vm.id)
        this.#onBooted(vm.id)
      })
  }

  close(): void {
    this.#closing.abort()
  }

  async #wait(vm: VmRef): Promise<void> {
    const { signal } = this.#closing
    let rewriteAtMs = performance.now() + firstRewriteMs
    for (let pauseMs = firstCheckMs; ; pauseMs = Math.min(pauseMs * 1.5, lastCheckMs)) {
      const status = await this.#inspect(vm, signal).catch(() => null)
      if (status?.power !== 'booting') return
      if (performance.now() > rewriteAtMs) {
        rewriteAtMs = performance.now() + nextRewriteMs
        await this.#rewriteForward(vm, signal).catch(() => {})
      }
      await sleep(pauseMs, undefined, { signal, ref: false })
    }
  }

  /** If a guest does not respond, its forward may be in Incus's database but not in the kernel. */
  async #rewriteForward(vm: VmRef, signal: AbortSignal): Promise<void> {
    const instance = await findInstance(this.#ctx, vm.id, signal)
    const { [marks.bridge]: bridge = '', [marks.publicAddress]: publicAddress = '' } = instance?.config ?? {}
    if (!instance || !bridge || !publicAddress || isLocalBridge(bridge)) return
    const privateAddress = instance.devices.eth0?.['ipv4.address'] ?? ''
    await rewriteForward(this.#ctx, bridge, { ...vm, publicAddress, privateAddress }, signal)
  }
}

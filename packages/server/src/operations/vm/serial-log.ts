import { Failure } from '../../domain/failure.ts'
import { type EngineConsole, EngineError } from '../../engines/engine.ts'
import type { Services } from '../../services.ts'
import type { VmRow } from '../../store/compute/vms.ts'
import { engineAt } from '../engine-work.ts'
import { refOf } from './vm.ts'

const limitMs = 10_000
const openMs = 5_000

export type GuestConsole = EngineConsole

/** `offset` is in bytes; without it, returns the last 64 KiB. */
export async function readSerialLog(
  services: Services,
  vm: VmRow,
  offset: number | undefined,
): Promise<{ content: string; nextOffset: number }> {
  try {
    return await engineAt(services, vm.location).serialLog(refOf(vm), offset, AbortSignal.timeout(limitMs))
  } catch (cause) {
    if (!(cause instanceof EngineError)) throw cause
    // The engine has not defined the VM yet, or its host is down: the log is empty.
    if (cause.kind === 'missing') return { content: '', nextOffset: offset ?? 0 }
    throw new Failure('unavailable', 'The serial log is temporarily unavailable. Try again.', { cause })
  }
}

/**
 * Connects to the serial console for writing. Throws a 409 if the VM has no console until it is stopped and
 * started.
 */
export async function openGuestConsole(services: Services, vm: VmRow): Promise<GuestConsole> {
  try {
    return await engineAt(services, vm.location).openConsole(refOf(vm), AbortSignal.timeout(openMs))
  } catch (cause) {
    if (!(cause instanceof EngineError)) throw cause
    if (cause.kind === 'rejected')
      throw new Failure('conflict', 'The VM has no console until it is stopped and started again.', { cause })
    throw new Failure('unavailable', 'The console is temporarily unavailable. Try again.', { cause })
  }
}

import { Failure } from '../../domain/failure.ts'
import { EngineError } from '../../engines/engine.ts'
import type { Services } from '../../services.ts'
import type { VmRow } from '../../store/compute/vms.ts'
import { engineAt } from '../engine-work.ts'
import { refOf } from './vm.ts'

const limitMs = 10_000

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

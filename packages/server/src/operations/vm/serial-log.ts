import { Failure } from '../../domain/failure.ts'
import { EngineError } from '../../engines/engine.ts'
import type { Services } from '../../services.ts'
import type { VmRow } from '../../store/compute/vms.ts'
import { engineAt } from '../engine-work.ts'
import { refOf } from './vm.ts'

const limitMs = 10_000

/** `offset` in bytes; without it the last 64 KiB. */
export async function readSerialLog(
  services: Services,
  vm: VmRow,
  offset: number | undefined,
): Promise<{ content: string; nextOffset: number }> {
  try {
    return await engineAt(services, vm.location).serialLog(refOf(vm), offset, AbortSignal.timeout(limitMs))
  } catch (cause) {
    if (!(cause instanceof EngineError)) throw cause
    // Not defined yet, or its host is away: nothing to read is not an error of the caller.
    if (cause.kind === 'missing') return { content: '', nextOffset: offset ?? 0 }
    throw new Failure('unavailable', 'The serial log cannot be read now: try again shortly.', { cause })
  }
}

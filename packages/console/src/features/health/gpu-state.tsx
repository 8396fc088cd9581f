import type { Gpu } from '@slipway/sdk'
import { plural } from '../../lib/format.ts'
import { StateBadge } from '../../ui/state.tsx'

const isFailed = ({ last_check }: Gpu): boolean => last_check.at !== '' && !last_check.passed

/** Returns true if an operator must look at the GPU, because it is suspect or failed its last check. */
export const needsCheck = (gpu: Gpu): boolean => gpu.suspect || isFailed(gpu)

/** Shows that a GPU is suspect, or that its last check failed, with the reasons on hover. */
export const GpuBadge = ({ gpu }: { gpu: Gpu }) =>
  needsCheck(gpu) && (
    <span title={gpu.last_check.reasons.join('\n')}>
      <StateBadge state={isFailed(gpu) ? 'check failed' : 'suspect'} />
    </span>
  )

/** Shows what is known about the health of a GPU: its last check and its faults. */
export const GpuHealth = ({ gpu }: { gpu: Gpu }) => (
  <span className="inline-flex flex-wrap items-center gap-x-2">
    <GpuBadge gpu={gpu} />
    {gpu.fault_count > 0 ? (
      <span className="text-ink-muted">{plural(gpu.fault_count, 'fault')}</span>
    ) : (
      !needsCheck(gpu) && <span className="text-ink-muted">no faults</span>
    )}
  </span>
)

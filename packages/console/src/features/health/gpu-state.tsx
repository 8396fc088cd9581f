import type { Gpu } from '@slipway/sdk'
import { StateBadge } from '../../ui/state.tsx'

/** Shows what is known about the health of a GPU: its faults and its last check. */
export function GpuHealth({ gpu }: { gpu: Gpu }) {
  const { suspect, fault_count, last_check } = gpu
  const isFailed = last_check.at !== '' && !last_check.passed
  const faults = fault_count === 0 ? '' : fault_count === 1 ? '1 fault' : `${fault_count} faults`
  return (
    <span className="inline-flex flex-wrap items-center gap-x-2" title={last_check.reasons.join('\n')}>
      {isFailed ? (
        <StateBadge state="check failed" />
      ) : suspect ? (
        <StateBadge state="suspect" />
      ) : (
        !faults && <span className="text-ink-muted">no faults</span>
      )}
      {faults && <span className="text-ink-muted">{faults}</span>}
    </span>
  )
}

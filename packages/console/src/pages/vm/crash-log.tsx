import type { Vm } from '@slipway/sdk'
import { read } from '../../api/read.ts'
import { useQuery } from '../../api/use-query.ts'

const shownLines = 6

/** The last lines of a crashed VM's serial log, which usually contain the cause. */
export function CrashLog({ vm }: { vm: Vm }) {
  const isCrashed = vm.state === 'STATE_CRASHED'
  const log = useQuery({
    ...read('vmSerialLog', { params: { project_id: vm.project_id, vm_id: vm.id }, query: {} }),
    enabled: isCrashed,
  })
  const lines = (log.data?.content ?? '').split('\n').filter((line) => line.trim() !== '')
  if (!isCrashed || lines.length === 0) return null
  return (
    <figure className="border-t border-line px-4 py-2.5">
      <figcaption className="text-sm text-ink-muted">Last lines of the serial log</figcaption>
      <pre className="mono mt-1 break-all whitespace-pre-wrap">{lines.slice(-shownLines).join('\n')}</pre>
    </figure>
  )
}

import type { HealthReason, Vm } from '@slipway/sdk'
import { useWhyNot } from '../../api/me.ts'
import { useSearchState } from '../../lib/use-search-state.ts'
import { Button } from '../../ui/button.tsx'
import { Section } from '../../ui/page.tsx'
import { Timestamp } from '../../ui/time.tsx'

const verbs: Record<HealthReason['action'], string> = { '': '', RESET: 'Reset', REPLACE: 'Replace' }

/** The faults of the VM's GPUs, each with the action that resolves it. */
export function HealthReasons({ vm }: { vm: Vm }) {
  const whyNot = useWhyNot('member')
  const [, setSearch] = useSearchState()
  const { reasons } = vm.health
  if (reasons.length === 0) return null
  return (
    <Section title="GPU health">
      <ul className="card divide-y divide-line">
        {reasons.map((reason) => (
          <li
            key={`${reason.code} ${reason.gpu_index} ${reason.source}`}
            className="flex flex-wrap items-center gap-x-4 gap-y-2 px-4 py-3"
          >
            <span className="min-w-0 flex-1">
              {reason.message}{' '}
              <span className="text-ink-muted">
                Reported by the {reason.source}, <Timestamp iso={reason.at} />
              </span>
            </span>
            {reason.action && (
              <Button
                size="small"
                reason={whyNot}
                aria-label={`${verbs[reason.action]} ${vm.name} because of GPU ${reason.gpu_index}`}
                onClick={() => setSearch({ ask: reason.action.toLowerCase() })}
              >
                {verbs[reason.action]}
              </Button>
            )}
          </li>
        ))}
      </ul>
    </Section>
  )
}

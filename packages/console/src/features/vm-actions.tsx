import { type Vm, type VmAction, vmActions } from '@slipway/sdk'
import { useOperation } from '../api/actions.ts'
import { client } from '../api/client.ts'
import { useWhyNot } from '../api/me.ts'
import { stateWord } from '../lib/states.ts'
import { useSearchState } from '../lib/use-search-state.ts'
import { Button } from '../ui/button.tsx'
import { Confirm } from '../ui/dialog.tsx'
import { Icon, type IconName } from '../ui/icon.tsx'

const words: Record<VmAction, { verb: string; past: string; icon: IconName; warning: string }> = {
  START: { verb: 'Start', past: 'Started', icon: 'play', warning: '' },
  STOP: {
    verb: 'Stop',
    past: 'Stopped',
    icon: 'square',
    warning:
      'Its GPUs are released and the VM is no longer billed. Disks and addresses are kept. Local scratch data is lost.',
  },
  RESET: {
    verb: 'Reset',
    past: 'Reset',
    icon: 'rotate-ccw',
    warning: 'Hard reset: unsaved data is lost. The VM keeps its GPUs.',
  },
}

/** Returns the states that the disabled actions require, one sentence for each set of states. */
export function disabledActionReasons(vm: Vm): string[] {
  const verbsOf = new Map<string, string[]>()
  for (const action of Object.keys(words) as VmAction[]) {
    const { from } = vmActions[action]
    if (from.includes(vm.state)) continue
    const states = from.map(stateWord).join(' or ')
    verbsOf.set(states, [...(verbsOf.get(states) ?? []), words[action].verb])
  }
  return [...verbsOf].map(
    ([states, verbs]) => `To ${verbs.join(' or ').toLowerCase()} the VM, it must be ${states}.`,
  )
}

/** Shows every action. An action that the state does not allow is disabled and says why. */
export function VmActions({ vm }: { vm: Vm }) {
  const whyNot = useWhyNot('member')
  // A search for "stop train-7" opens the page with this confirmation.
  const [search, setSearch] = useSearchState()
  const asked =
    (Object.keys(words) as VmAction[]).find((action) => action.toLowerCase() === search.ask) ?? null
  const setAsked = (action: VmAction | null) => setSearch({ ask: action?.toLowerCase() ?? '' })
  const act = useOperation({
    projectId: vm.project_id,
    run: (action: VmAction) => client.vmUpdate({ project_id: vm.project_id, vm_id: vm.id }, { action }),
    done: (action) => `${words[action].past} ${vm.name}`,
    failed: (action) => `Could not ${words[action].verb.toLowerCase()} ${vm.name}`,
    invalidates: ['vmGet', 'vmList'],
  })
  const reasonFor = (action: VmAction) => {
    if (whyNot) return whyNot
    const { from } = vmActions[action]
    if (from.includes(vm.state)) return undefined
    return `The VM must be ${from.map(stateWord).join(' or ')}. It is ${stateWord(vm.state)}.`
  }
  const confirmed = asked ? words[asked] : null
  return (
    <>
      {(Object.keys(words) as VmAction[]).map((action) => {
        const { verb, icon, warning } = words[action]
        return (
          <Button
            key={action}
            icon={<Icon name={icon} size={14} />}
            reason={reasonFor(action)}
            isBusy={act.isPending && act.variables === action}
            onClick={() => (warning ? setAsked(action) : act.mutate(action))}
          >
            {verb}
          </Button>
        )
      })}
      <Confirm
        isOpen={asked !== null && !reasonFor(asked)}
        onClose={() => setAsked(null)}
        title={`${confirmed?.verb} ${vm.name}`}
        action={`${confirmed?.verb} VM`}
        isBusy={act.isPending}
        error={null}
        onSubmit={() => asked && act.mutate(asked, { onSettled: () => setAsked(null) })}
      >
        <p>{confirmed?.warning || 'The VM takes GPUs again and is billed.'}</p>
      </Confirm>
    </>
  )
}

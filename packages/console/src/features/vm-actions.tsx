import { type ApiError, isApiError, type Vm, type VmAction, vmActions, vmStateTable } from '@slipway/sdk'
import { useOperation } from '../api/actions.ts'
import { client } from '../api/client.ts'
import { useWhyNot } from '../api/me.ts'
import { usePriceOf } from '../api/prices.ts'
import { reservedAddressOf } from '../lib/addresses.ts'
import { dataDisksOf } from '../lib/disks.ts'
import { firstNames, plural, usd } from '../lib/format.ts'
import { projectCommands, shellQuote } from '../lib/shell.ts'
import { stateStyles, stateWord } from '../lib/states.ts'
import { useSearchState } from '../lib/use-search-state.ts'
import { Button } from '../ui/button.tsx'
import { Confirm } from '../ui/dialog.tsx'
import { Icon, type IconName } from '../ui/icon.tsx'
import { Sentence } from '../ui/no-break.tsx'
import { WaitToStart } from './capacity/wait-to-start.tsx'

const words: Record<VmAction, { verb: string; past: string; icon: IconName }> = {
  START: { verb: 'Start', past: 'Started', icon: 'play' },
  STOP: { verb: 'Stop', past: 'Stopped', icon: 'square' },
  RESET: { verb: 'Reset', past: 'Reset', icon: 'rotate-ccw' },
  REPLACE: { verb: 'Replace', past: 'Replaced', icon: 'unplug' },
}

/** Replace is shown only if one of the VM's GPUs is faulty. */
const actionsOf = ({ health }: Vm): VmAction[] =>
  (Object.keys(words) as VmAction[]).filter((action) => action !== 'REPLACE' || health.reasons.length > 0)

/** Explains in a confirmation dialog what an action does to the VMs. */
export function ActionEffects({ action, vms }: { action: VmAction; vms: Vm[] }) {
  const usdPerHour = usePriceOf(vms[0]?.project_id ?? '')
  const priced = vms.filter((vm) => action === 'START' || vmStateTable[vm.state].isBilled)
  const sum = usd(priced.reduce((sum, vm) => sum + (usdPerHour(vm.type) ?? vm.usd_per_hour ?? 0), 0))
  const isOne = vms.length === 1
  const scratch = vms.filter((vm) => vm.scratch_gb > 0)
  if (action === 'RESET')
    return (
      <p>
        Hard reset: unsaved data will be lost. The VM will keep its GPUs, disks and addresses.
        {scratch.length > 0 && ' Local scratch data may be lost.'}
      </p>
    )
  if (action === 'REPLACE')
    return (
      <>
        <p>The VM will stop and start on other GPUs. Its ID, disks, addresses and host keys will be kept.</p>
        {scratch.length > 0 && (
          <p className="mt-2">
            <b className="font-medium text-ink">Local scratch data will be lost.</b>
          </p>
        )}
      </>
    )
  if (action === 'START')
    return (
      <p>
        {isOne ? 'The VM' : 'The VMs'} will use GPUs again and cost{' '}
        <b className="figures font-medium text-ink">{sum}/h</b>.
      </p>
    )
  return (
    <>
      <p>
        {isOne ? 'Its GPUs will be released and the VM' : 'GPUs will be released and the VMs'} will no longer
        be billed: this saves <b className="figures font-medium text-ink">{sum}/h</b>. Disks and addresses
        will be kept{stoppedCosts(vms)}.
      </p>
      {scratch.length > 0 && (
        <p className="mt-2">
          <b className="font-medium text-ink">Local scratch data will be lost</b>
          {isOne ? '.' : <Sentence text={` on ${scratchText(scratch, vms)}.`} />}
        </p>
      )}
    </>
  )
}

/** Returns what is billed while the VMs are stopped, as the end of a sentence; empty if there is nothing. */
function stoppedCosts(vms: Vm[]): string {
  const costs = [
    ...(dataDisksOf(vms).length > 0 ? ['data disks'] : []),
    ...(vms.some((vm) => reservedAddressOf(vm) !== '') ? ['reserved addresses'] : []),
  ]
  return costs.length === 0 ? '' : `; ${costs.join(' and ')} are billed`
}

/** Returns the number of VMs with scratch data and, unless all VMs have it, names: "5 VMs: a, b, c and 2 more". */
const scratchText = (scratch: Vm[], vms: Vm[]): string =>
  scratch.length === vms.length
    ? plural(vms.length, 'VM')
    : `${plural(scratch.length, 'VM')}: ${firstNames(scratch.map(({ name }) => name))}`

/**
 * Returns the states that the disabled actions require, one sentence for each set of states. That a running VM cannot
 * be started needs no explanation. While an operation changes the state, its end is what the user waits for.
 */
export function disabledActionReasons(vm: Vm): string[] {
  if (vm.state === 'STATE_DELETING') return ['The VM is being deleted.']
  const verbsOf = new Map<string, string[]>()
  for (const action of actionsOf(vm)) {
    const { from } = vmActions[action]
    if (from.includes(vm.state) || (action === 'START' && vm.state === 'STATE_RUNNING')) continue
    const states = from.map(stateWord).join(' or ')
    verbsOf.set(states, [...(verbsOf.get(states) ?? []), words[action].verb])
  }
  if (verbsOf.size > 0 && isChanging(vm))
    return ['More actions will be available when the current operation is complete.']
  return [...verbsOf].map(
    ([states, verbs]) => `To ${verbs.join(' or ').toLowerCase()} the VM, it must be ${states}.`,
  )
}

/** Returns whether an operation on the VM is in progress. */
const isChanging = ({ state }: Vm): boolean => stateStyles[state]?.[0] === 'busy'

export const crashActions: VmAction[] = ['RESET', 'STOP']

/** Buttons that open the confirmations to reset and to stop a crashed VM, next to its price. */
export function CrashActions({ vm, reason }: { vm: Vm; reason: string | undefined }) {
  const [, setSearch] = useSearchState()
  const usdPerHour = usePriceOf(vm.project_id)(vm.type) ?? vm.usd_per_hour
  if (!vmActions.STOP.from.includes(vm.state)) return null
  return (
    <span className="flex items-center gap-3">
      {usdPerHour !== null && <span className="figures whitespace-nowrap">{usd(usdPerHour)}/h</span>}
      {crashActions.map((action) => (
        <Button
          key={action}
          size="small"
          aria-label={`${words[action].verb} ${vm.name}`}
          icon={<Icon name={words[action].icon} size={14} />}
          reason={reason}
          onClick={() => setSearch({ ask: action.toLowerCase() })}
        >
          {words[action].verb}
        </Button>
      ))}
    </span>
  )
}

const isOutOfStock = (error: unknown): error is ApiError => isApiError(error) && error.code === 'out_of_stock'

/** Shows every action that is not in `omit`. Actions that the state does not allow are disabled, with a reason. */
export function VmActions({ vm, omit }: { vm: Vm; omit: VmAction[] }) {
  const whyNot = useWhyNot('member')
  // A search for "stop train-7" opens the page with this confirmation.
  const [search, setSearch] = useSearchState()
  const asked = actionsOf(vm).find((action) => action.toLowerCase() === search.ask) ?? null
  const setAsked = (action: VmAction | null) => setSearch({ ask: action?.toLowerCase() ?? '' })
  const act = useOperation({
    projectId: vm.project_id,
    run: (action: VmAction) => client.vmUpdate({ project_id: vm.project_id, vm_id: vm.id }, { action }),
    done: (action) => `${words[action].past} ${vm.name}`,
    failed: (action) => `Could not ${words[action].verb.toLowerCase()} ${vm.name}`,
    invalidates: ['vmGet', 'vmList'],
    showsError: isOutOfStock,
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
      {actionsOf(vm).map((action) => {
        if (omit.includes(action)) return null
        const { verb, icon } = words[action]
        return (
          <Button
            key={action}
            icon={<Icon name={icon} size={14} />}
            reason={reasonFor(action)}
            isBusy={act.isPending && act.variables === action}
            onClick={() => (action === 'START' ? act.mutate(action) : setAsked(action))}
          >
            {verb}
          </Button>
        )
      })}
      {isOutOfStock(act.error) && <WaitToStart vm={vm} error={act.error} onClose={() => act.reset()} />}
      <Confirm
        isOpen={asked !== null && !reasonFor(asked)}
        onClose={() => setAsked(null)}
        title={`${confirmed?.verb} VM ${vm.name}`}
        action={`${confirmed?.verb} VM`}
        isBusy={act.isPending}
        error={null}
        onSubmit={() => asked && act.mutate(asked, { onSettled: () => setAsked(null) })}
        commands={
          asked
            ? projectCommands(vm.project_id, {
                cli: `slipway vm ${asked.toLowerCase()} ${shellQuote(vm.name)}`,
                method: 'PATCH',
                path: `/vms/${vm.id}`,
                body: { action: asked },
              })
            : undefined
        }
      >
        {asked && <ActionEffects action={asked} vms={[vm]} />}
      </Confirm>
    </>
  )
}

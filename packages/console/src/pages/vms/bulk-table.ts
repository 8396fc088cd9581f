import { type Operation, type Vm, type VmAction, vmActions } from '@slipway/sdk'
import { client } from '../../api/client.ts'
import { parseLabels } from '../../lib/labels.ts'
import type { IconName } from '../../ui/icon.tsx'

/** The input of the labels and protection dialogs. */
export interface BulkInput {
  setLabels: string
  removedLabels: string[]
  isProtected: boolean
}

interface BulkAction {
  verb: string
  past: string
  icon: IconName
  /** Returns whether the action applies to a VM; other VMs are skipped. */
  fits: (vm: Vm) => boolean
  /** Why the action is disabled if it applies to no VM. */
  noneFits: string
  run: (vm: Vm, input: BulkInput) => Promise<{ operation: Operation }>
}

const targetOf = ({ project_id, id }: Vm) => ({ project_id, vm_id: id })
const allows = (action: VmAction) => (vm: Vm) => vmActions[action].from.includes(vm.state)

export const bulkActions = {
  start: {
    verb: 'Start',
    past: 'Started',
    icon: 'play',
    fits: allows('START'),
    noneFits: 'None of the selected VMs are stopped',
    run: (vm) => client.vmUpdate(targetOf(vm), { action: 'START' }),
  },
  stop: {
    verb: 'Stop',
    past: 'Stopped',
    icon: 'square',
    fits: allows('STOP'),
    noneFits: 'None of the selected VMs are running or crashed',
    run: (vm) => client.vmUpdate(targetOf(vm), { action: 'STOP' }),
  },
  labels: {
    verb: 'Change the labels of',
    past: 'Labeled',
    icon: 'pencil',
    fits: () => true,
    noneFits: '',
    run: (vm, input) => client.vmUpdate(targetOf(vm), { labels: labelsAfter(vm, input) }),
  },
  protect: {
    verb: 'Change the protection of',
    past: 'Changed protection of',
    icon: 'lock',
    fits: () => true,
    noneFits: '',
    run: (vm, { isProtected }) => client.vmUpdate(targetOf(vm), { deletion_protection: isProtected }),
  },
  delete: {
    verb: 'Delete',
    past: 'Deleted',
    icon: 'trash',
    fits: (vm) => !vm.deletion_protection && vm.state !== 'STATE_DELETING',
    noneFits: 'All selected VMs are protected or already being deleted',
    run: (vm) => client.vmDelete(targetOf(vm)),
  },
} as const satisfies Record<string, BulkAction>

export type BulkName = keyof typeof bulkActions
export const bulkNames = Object.keys(bulkActions) as BulkName[]
export const bulkAction = (name: BulkName): BulkAction => bulkActions[name]

/** Returns the labels of a VM after the change. Other labels are kept. */
export function labelsAfter(vm: Vm, { setLabels, removedLabels }: BulkInput): Record<string, string> {
  const kept = Object.entries(vm.labels).filter(([key]) => !removedLabels.includes(key))
  return { ...Object.fromEntries(kept), ...parseLabels(setLabels).labels }
}

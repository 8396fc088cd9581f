import { type Vm, type VmAction, type VmUpdate, vmActions } from '@slipway/sdk'
import { labelOptions, parseLabels } from '../../lib/labels.ts'
import { type Commands, joinedCommands, projectCommands, shellQuote } from '../../lib/shell.ts'
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
  /** Returns the change of a VM; null to delete it. */
  change: (vm: Vm, input: BulkInput) => VmUpdate | null
  /** Returns the words of the CLI command around the name of the VM. */
  words: (vm: Vm, input: BulkInput) => [before: string, after?: string]
}

const allows = (action: VmAction) => (vm: Vm) => vmActions[action].from.includes(vm.state)

export const bulkActions = {
  start: {
    verb: 'Start',
    past: 'Started',
    icon: 'play',
    fits: allows('START'),
    noneFits: 'None of the selected VMs are stopped',
    change: () => ({ action: 'START' }),
    words: () => ['slipway vm start'],
  },
  stop: {
    verb: 'Stop',
    past: 'Stopped',
    icon: 'square',
    fits: allows('STOP'),
    noneFits: 'None of the selected VMs are running or crashed',
    change: () => ({ action: 'STOP' }),
    words: () => ['slipway vm stop'],
  },
  labels: {
    verb: 'Change the labels of',
    past: 'Labeled',
    icon: 'pencil',
    fits: () => true,
    noneFits: '',
    change: (vm, input) => ({ labels: labelsAfter(vm, input) }),
    words: (vm, input) => ['slipway vm label', labelOptions(vm.labels, labelsAfter(vm, input))],
  },
  protect: {
    verb: 'Change the protection of',
    past: 'Changed protection of',
    icon: 'lock',
    fits: () => true,
    noneFits: '',
    change: (_, { isProtected }) => ({ deletion_protection: isProtected }),
    words: (_, { isProtected }) => [isProtected ? 'slipway vm protect' : 'slipway vm unprotect'],
  },
  delete: {
    verb: 'Delete',
    past: 'Deleted',
    icon: 'trash',
    fits: (vm) => !vm.deletion_protection && vm.state !== 'STATE_DELETING',
    noneFits: 'All selected VMs are protected or already being deleted',
    change: () => null,
    words: () => ['slipway vm delete', '--yes'],
  },
} as const satisfies Record<string, BulkAction>

export type BulkName = keyof typeof bulkActions
export const bulkNames = Object.keys(bulkActions) as BulkName[]
export const bulkAction = (name: BulkName): BulkAction => bulkActions[name]

/** Returns the commands that are equivalent to the action on all the VMs. */
export function bulkCommands(name: BulkName, vms: Vm[], input: BulkInput): Commands {
  const { change, words } = bulkAction(name)
  const lines = vms.map((vm) => {
    const [before, after = ''] = words(vm, input)
    return `${before} ${shellQuote(vm.name)} ${after}`.trimEnd()
  })
  const each = vms.map((vm) => {
    const body = change(vm, input)
    return projectCommands(vm.project_id, {
      cli: '',
      method: body ? 'PATCH' : 'DELETE',
      path: `/vms/${vm.id}`,
      ...(body && { body }),
      ...(body && !('action' in body) && { terraform: 'vm', changes: vm.name }),
    })
  })
  return joinedCommands(lines.join('\n'), each)
}

/** Returns the labels of a VM after the change. Other labels are kept. */
export function labelsAfter(vm: Vm, { setLabels, removedLabels }: BulkInput): Record<string, string> {
  const kept = Object.entries(vm.labels).filter(([key]) => !removedLabels.includes(key))
  return { ...Object.fromEntries(kept), ...parseLabels(setLabels).labels }
}

import type { Vm } from '@slipway/sdk'
import { useNavigate } from '@tanstack/react-router'
import type { UsdPerHour } from '../../api/prices.ts'
import { plural, usd } from '../../lib/format.ts'
import { stateWord } from '../../lib/states.ts'
import { Button, IconButton } from '../../ui/button.tsx'
import { Icon } from '../../ui/icon.tsx'
import { Menu } from '../../ui/menu.tsx'
import { type BulkName, bulkAction, bulkNames } from './bulk-table.ts'

const buttonText: Record<BulkName, string> = {
  start: 'Start',
  stop: 'Stop',
  labels: 'Edit labels',
  protect: 'Change protection',
  delete: 'Delete',
}

interface BulkActionsProps {
  vms: Vm[]
  usdPerHour: UsdPerHour
  whyNot: string | undefined
  onAsk: (what: BulkName) => void
  onClear: () => void
}

/** A bar with the actions on the selected VMs. It stays visible below a long list. */
export function BulkActions({ vms, usdPerHour, whyNot, onAsk, onClear }: BulkActionsProps) {
  const total = vms.reduce((sum, vm) => sum + (usdPerHour(vm) ?? 0), 0)
  return (
    <div
      role="toolbar"
      aria-label="Selected VMs"
      className="sticky bottom-4 z-10 flex flex-wrap items-center gap-2 rounded-lg border border-line-strong bg-surface px-3 py-2 shadow-lg"
    >
      <span className="figures mr-2">
        <span className="font-medium">{plural(vms.length, 'VM')} selected</span>, {usd(total)}/h
      </span>
      {bulkNames.map((name) => {
        const { icon, fits, noneFits } = bulkAction(name)
        return (
          <Button
            key={name}
            size="small"
            kind={name === 'delete' ? 'danger' : 'plain'}
            icon={<Icon name={icon} size={14} />}
            reason={whyNot ?? (vms.some(fits) ? undefined : noneFits)}
            onClick={() => onAsk(name)}
          >
            {buttonText[name]}
          </Button>
        )
      })}
      <Button size="small" kind="quiet" className="ml-auto" onClick={onClear}>
        Clear selection
      </Button>
    </div>
  )
}

interface RowMenuProps {
  vm: Vm
  whyNot: string | undefined
  onAsk: (what: BulkName) => void
}

/** A row's menu, with the actions that the VM's state allows. */
export function RowMenu({ vm, whyNot, onAsk }: RowMenuProps) {
  const navigate = useNavigate()
  const possible = whyNot ? [] : bulkNames.filter((name) => bulkAction(name).fits(vm))
  return (
    <Menu
      label={`Actions for ${vm.name}`}
      header={whyNot ?? `${vm.name} is ${stateWord(vm.state)}`}
      trigger={<IconButton label={`Actions for ${vm.name}`} icon={<Icon name="ellipsis" size={16} />} />}
      entries={[
        {
          key: 'open',
          label: 'Open',
          icon: <Icon name="server" size={14} />,
          onSelect: () =>
            void navigate({
              to: '/projects/$projectId/vms/$vmId',
              params: { projectId: vm.project_id, vmId: vm.id },
            }),
        },
        ...possible.map((name) => ({
          key: name,
          label: buttonText[name],
          icon: <Icon name={bulkAction(name).icon} size={14} />,
          isDanger: name === 'delete',
          hasSeparator: name === 'delete',
          onSelect: () => onAsk(name),
        })),
      ]}
    />
  )
}

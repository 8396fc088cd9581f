import type { Vm } from '@slipway/sdk'
import { useNavigate } from '@tanstack/react-router'
import { plural } from '../../lib/format.ts'
import { stateWord } from '../../lib/states.ts'
import { Button, IconButton } from '../../ui/button.tsx'
import { Icon } from '../../ui/icon.tsx'
import { Menu } from '../../ui/menu.tsx'
import { type BulkName, bulkAction, bulkNames } from './bulk-table.ts'

const buttonText: Record<BulkName, string> = {
  start: 'Start',
  stop: 'Stop',
  labels: 'Labels',
  protect: 'Protection',
  delete: 'Delete',
}

interface BulkActionsProps {
  vms: Vm[]
  whyNot: string | undefined
  onAsk: (what: BulkName) => void
  onClear: () => void
}

/** The actions on the selected VMs. */
export function BulkActions({ vms, whyNot, onAsk, onClear }: BulkActionsProps) {
  return (
    <>
      <span className="figures font-medium">{plural(vms.length, 'VM')} selected</span>
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
      <Button size="small" kind="quiet" onClick={onClear}>
        Clear
      </Button>
    </>
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
